package deployment

import (
	"context"
	"sync"
	"time"
)

// Confirmer asks whether topics are still the same, for all tasks of a process: tasks that come while a question is
// being asked share the next one.
type Confirmer struct {
	ask func(context.Context) error

	mu     sync.Mutex
	next   *question // that is not asked yet
	asking *question // nil = none
	last   *question // that was answered well

	doubted time.Time // nothing that was asked before holds any more
}

type question struct {
	asked time.Time
	done  chan struct{}
	err   error
}

// Now returns the answer to a question that is asked after the call.
func (c *Confirmer) Now(ctx context.Context) error {
	c.mu.Lock()
	q := c.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		c.next = q
		go c.answer(context.WithoutCancel(ctx), q, c.asking)
	}
	c.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done(): // nothing is known
		return nil
	}
}

// answer asks a question once the one before is answered.
func (c *Confirmer) answer(ctx context.Context, q, before *question) {
	if before != nil {
		<-before.done
	}
	c.mu.Lock()
	c.next, c.asking, q.asked = nil, q, time.Now()
	c.mu.Unlock()
	q.err = c.ask(ctx)
	c.mu.Lock()
	if q.err == nil {
		c.last = q
	}
	c.mu.Unlock()
	close(q.done)
}

// confirmEvery is how often the repartition stage asks while messages come.
const confirmEvery = time.Second

// Lately returns the answer to a recent question, or to one asked after the call.
func (c *Confirmer) Lately(ctx context.Context) error {
	c.mu.Lock()
	fresh := c.last != nil && c.last.asked.After(c.doubted) && time.Since(c.last.asked) < confirmEvery
	c.mu.Unlock()
	if fresh {
		return nil
	}
	return c.Now(ctx)
}

// Doubt makes Lately ask again: something has happened that may have changed the answer, such as a failed read.
func (c *Confirmer) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubted = time.Now()
}
