// Package backoff waits between attempts at what may pass, such as a broker that is gone: twice as long each time.
//
//	for pause := backoff.New(time.Second, time.Minute); try() != nil && ctx.Err() == nil; {
//		pause.Wait(ctx)
//	}
package backoff

import (
	"context"
	"time"
)

// Backoff is the pauses between the attempts of one loop. One goroutine uses it.
type Backoff struct{ first, most, next time.Duration }

// New returns pauses that begin with first and double up to most.
func New(first, most time.Duration) *Backoff { return &Backoff{first, most, first} }

// Next returns the pause before the next attempt, for a caller that waits by itself.
func (b *Backoff) Next() time.Duration {
	d := b.next
	b.next = min(2*d, b.most)
	return d
}

// Reset begins with the first pause again: an attempt did well.
func (b *Backoff) Reset() { b.next = b.first }

// Wait waits for the next pause, or until ctx is done.
func (b *Backoff) Wait(ctx context.Context) { Sleep(ctx, b.Next()) }

// Sleep waits for d, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
