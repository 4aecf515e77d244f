package notify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// progress is how far each webhook has been notified, and so what may be committed: the least of them.
type progress struct {
	done  int64 // before this offset all had been notified at the start
	mu    sync.Mutex
	next  []int64       // by webhook: the offset after the last record that it needs no more; -1 = none yet
	moved chan struct{} // one of them changed
}

func newProgress(done int64, webhooks int) *progress {
	p := &progress{done: done, next: make([]int64, webhooks), moved: make(chan struct{}, 1)}
	for i := range p.next {
		p.next[i] = -1
	}
	return p
}

// reach says that webhook i needs nothing before next.
func (p *progress) reach(i int, next int64) {
	p.mu.Lock()
	p.next[i] = next
	p.mu.Unlock()
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

func (p *progress) least() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Min(p.next)
}

// commit commits what all have reached, whenever that is further than before, until ctx is done. A commit that fails
// ends nothing: to begin anew would cost more than what it costs if the process ends before the next one.
func (p *progress) commit(ctx context.Context, commit func(ctx context.Context, next int64) error) error {
	done := int64(-1)
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.moved:
		case <-again:
		}
		next := p.least()
		if next <= done {
			continue
		}
		if again = nil; commit(ctx, next) != nil {
			again = time.After(lastPause) // or when more is done
			continue
		}
		done = next
	}
}
