package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// lastSource ends the task's context where its values end.
type lastSource struct {
	*listSource
	end context.CancelFunc
}

func (s lastSource) Next(ctx context.Context) (Record, error) {
	if s.CaughtUp() {
		s.end()
		return Record{}, ctx.Err()
	}
	return s.listSource.Next(ctx)
}

// TestUnsaved: a task whose last checkpoint is refused, or cannot be written, says so and up to where its input is not
// saved, when its generation ends and at the end of its input; one that is refused before says nothing of a last one.
func TestUnsaved(t *testing.T) {
	for name, c := range map[string]struct {
		taken bool
		cause error
		ended bool // by its context
	}{"zombie": {true, ErrFenced, true}, "disk": {false, errTest, true}, "end of the input": {false, errTest, false}} {
		r := newRig(1, 2)
		ctx, cancel := context.WithCancel(context.Background())
		if r.store.taken = c.taken; !c.taken {
			r.store.fail = func(int) error { return errTest }
		}
		src := Source(r.source)
		if c.ended {
			src = lastSource{r.source, cancel}
		}
		err := r.runFrom(ctx, src)
		cancel()
		if !errors.Is(err, ErrUnsaved) || !errors.Is(err, c.cause) || !strings.Contains(err.Error(), "up to logits 2") {
			t.Errorf("%s: %v, want that the last checkpoint is not saved, up to logits 2, and %v", name, err, c.cause)
		}
	}
	r := newRig(1, 2, 3, 4)
	r.runner.Interval = 1
	r.store.fail = func(int) error { return ErrFenced }
	if err := r.run(context.Background()); !errors.Is(err, ErrFenced) || errors.Is(err, ErrUnsaved) {
		t.Errorf("in between: %v", err)
	}
}

// TestLostStateIsSavedAnew: a task that takes nothing writes no checkpoint, but where the ones that it wrote are gone.
func TestLostStateIsSavedAnew(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRig()
		r.store.lost = lost
		if err := r.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := len(r.store.saved); n > 0 != lost {
			t.Errorf("lost %t: %d checkpoints", lost, n)
		}
	}
}
