package backoff_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/internal/backoff"
)

func TestPauses(t *testing.T) {
	b := backoff.New(2*time.Second, 10*time.Second)
	pauses := func(n int) (out []time.Duration) {
		for range n {
			out = append(out, b.Next()/time.Second)
		}
		return out
	}
	if got, want := pauses(5), []time.Duration{2, 4, 8, 10, 10}; !slices.Equal(got, want) {
		t.Errorf("pauses of %d seconds, want %d", got, want)
	}
	b.Reset()
	if got, want := pauses(2), []time.Duration{2, 4}; !slices.Equal(got, want) {
		t.Errorf("after a reset pauses of %d seconds, want %d", got, want)
	}
}

// TestWait: a wait takes its pause, and ends with its context.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b := backoff.New(2*time.Second, time.Minute)
		for i, want := range []time.Duration{2 * time.Second, 5 * time.Second, 5 * time.Second} {
			b.Wait(ctx)
			if got := time.Since(begin); got != want {
				t.Errorf("wait %d ended after %v, want %v", i, got, want)
			}
		}
	})
}
