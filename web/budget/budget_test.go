package budget_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/web/budget"
)

const kib = 1 << 10

func newBudget() *budget.Budget {
	return budget.New(budget.Options{Bodies: 256 * kib, Work: 100, Patience: time.Second})
}

// whole fails the test unless all the room for bodies is free.
func whole(t *testing.T, b *budget.Budget) {
	t.Helper()
	_, free, err := b.Read(t.Context(), of(200*kib, 200*kib, 1<<20))
	if err != nil {
		t.Errorf("not all room was given back: %v", err)
	}
	free()
}

func of(size, length, most int) budget.Body {
	return budget.Body{From: bytes.NewReader(make([]byte, size)), Length: int64(length), Most: most}
}

func TestRead(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		in   budget.Body
		size int
		err  error
	}{
		"empty":                       {of(0, 0, 10), 0, nil},
		"of its length":               {of(100*kib, 100*kib, 200*kib), 100 * kib, nil},
		"of no length":                {of(100*kib, -1, 200*kib), 100 * kib, nil},
		"of all that is allowed":      {of(200*kib, -1, 200*kib), 200 * kib, nil},
		"more than was announced":     {of(100*kib, 10, 200*kib), 100 * kib, nil},
		"a byte too much":             {of(200*kib+1, -1, 200*kib), 0, budget.TooLarge(200 * kib)},
		"more than there is":          {of(900*kib, -1, 1<<20), 900 * kib, nil},
		"more than there is, allowed": {of(10, -1, 1<<30), 10, nil},
		"broken":                      {budget.Body{From: iotest.ErrReader(broken), Length: -1, Most: 10}, 0, broken},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudget()
			body, free, err := b.Read(t.Context(), c.in)
			if len(body) != c.size || !errors.Is(err, c.err) {
				t.Errorf("got %d bytes, %v; want %d, %v", len(body), err, c.size, c.err)
			}
			free()
			whole(t, b)
		})
	}
}

// TestStalledBodiesHoldLittle: three that announce all the room hold what the first part of each takes, and one that
// has no room for its first part waits; to grow nobody waits.
func TestStalledBodiesHoldLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ends []*io.PipeWriter
		stall := func() {
			r, w := io.Pipe()
			ends = append(ends, w)
			go func() {
				_, free, _ := b.Read(ctx, budget.Body{From: r, Length: 256 * kib, Most: 256 * kib})
				free()
			}()
			synctest.Wait()
		}
		stall()
		stall()
		stall()
		_, free, err := b.Read(ctx, of(60*kib, 60*kib, 256*kib))
		if err != nil {
			t.Fatalf("a small body beside stalled ones: %v", err)
		}
		begun := time.Now()
		if _, _, err := b.Read(ctx, of(60*kib, 60*kib, 256*kib)); !errors.Is(err, budget.ErrBusy) ||
			time.Since(begun) != time.Second {
			t.Errorf("with all room in use: %v after %v", err, time.Since(begun))
		}
		time.AfterFunc(time.Second/2, free)
		_, free, err = b.Read(ctx, of(60*kib, 60*kib, 256*kib))
		if err != nil {
			t.Errorf("with room after a while: %v", err)
		}
		free()
		begun = time.Now()
		_, free, err = b.Read(ctx, of(100*kib, -1, 256*kib))
		if !errors.Is(err, budget.ErrBusy) || time.Since(begun) != 0 {
			t.Errorf("growing without room: %v after %v", err, time.Since(begun))
		}
		free()
		for _, w := range ends {
			_ = w.Close()
		}
		synctest.Wait()
		whole(t, b)
	})
}

// TestTurn: work that is over its share waits, and no longer than its client.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget()
		done, err := b.Turn(t.Context(), 1000) // all of it
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		begun := time.Now()
		if _, err := b.Turn(ctx, 1); !errors.Is(err, budget.ErrBusy) || time.Since(begun) != time.Second/4 {
			t.Errorf("a second request: %v after %v", err, time.Since(begun))
		}
		time.AfterFunc(time.Second/2, done)
		if done, err = b.Turn(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
