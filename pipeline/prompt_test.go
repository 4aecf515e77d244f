package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// promptly runs a rig whose task has all its outputs before the checkpoint written promptly.
func (r *rig) promptly(ctx context.Context) error {
	return Run(ctx, r.runner, func() (Registered, error) {
		task, err := r.build()
		task.Prompt = func() []Message {
			ms := r.task.before
			r.task.before = nil
			return ms
		}
		return task, err
	}, func(next map[Input]int64) (Opened, error) {
		r.source.next = next[Logits]
		return Opened{Source: r.source}, nil
	})
}

// TestPromptOutputsDoNotWait: they are written while the task goes on, and a checkpoint waits for them.
func TestPromptOutputsDoNotWait(t *testing.T) {
	const write = time.Second
	for _, ends := range []time.Duration{write + write/2, write / 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(1)
			r.source.wait = true
			r.sink.fail = func([]Message) error {
				time.Sleep(write)
				return nil
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.promptly(ctx) }()
			time.Sleep(ends)
			synctest.Wait()
			if ends > write && len(r.events) != 1 {
				t.Errorf("while the task waits for records: %v, want its first output", r.events)
			}
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			want := "write deadletter, save, write panes, commit"
			if got := strings.Join(r.events, ", "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestPromptOutputsThatFail: without them no checkpoint counts, so that they are made again.
func TestPromptOutputsThatFail(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	r.sink.fail = func([]Message) error { return errTest }
	if err := r.promptly(t.Context()); !errors.Is(err, errTest) || len(r.store.saved) > 0 {
		t.Fatalf("%d checkpoints, %v; want none, and the sink's error", len(r.store.saved), err)
	}
	r.sink.fail = nil
	if err := r.promptly(t.Context()); err != nil || r.task.state.sum != 10 || len(r.store.saved) != 1 {
		t.Errorf("again: sum %d, %d checkpoints, %v", r.task.state.sum, len(r.store.saved), err)
	}
}

// TestPromptOutputsAreBounded: a task whose outputs cannot be written does not gather more of them for ever.
func TestPromptOutputsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrote int
		p := newAsyncWriter(func(ms []Message) error {
			time.Sleep(time.Second)
			wrote += len(ms)
			return nil
		})
		large := []Message{{Value: make([]byte, maxBuffered)}}
		start := time.Now()
		for range 4 {
			if err := p.put(large); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < time.Second {
			t.Errorf("four messages of the bound were taken in %v", took)
		}
		if err := p.written(p.mark()); err != nil || wrote != 4 {
			t.Errorf("%d written, %v", wrote, err)
		}
	})
}
