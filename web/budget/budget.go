// Package budget bounds the memory that the requests of a handler hold at a time. What a request does not get in time
// is ErrBusy: nobody holds room while waiting for more of the same kind, so requests never wait for each other.
package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrBusy is what a request gets that cannot have the memory it needs now.
var ErrBusy = errors.New("too many bytes are in work: wait, or send less at a time")

// TooLarge is the error of a body of more than so many bytes.
type TooLarge int

func (n TooLarge) Error() string { return fmt.Sprintf("body of more than %d bytes", int(n)) }

// Options are the bounds.
type Options struct {
	Bodies   int64         // bytes of bodies that are held
	Work     int64         // bytes in use for what is made of them
	Patience time.Duration // how long a request waits for its turn
}

// Budget is safe for concurrent use.
type Budget struct {
	Options
	bodies, work *semaphore.Weighted
}

// New returns a budget of which nothing is used.
func New(o Options) *Budget {
	return &Budget{o, semaphore.NewWeighted(o.Bodies), semaphore.NewWeighted(o.Work)}
}

// Body is one to read.
type Body struct {
	From   io.Reader
	Length int64 // as announced; negative if it is not known
	Most   int   // bytes that are allowed
}

// part is what the first bytes of a body take, at most.
const part = 64 << 10

// Read reads a body. It holds memory for what has come, not for what a client announces: a slow client holds little.
// It waits for room for the first part only. free gives all back; it is never nil.
func (b *Budget) Read(ctx context.Context, in Body) (body []byte, free func(), err error) {
	held := int64(0)
	free = func() { b.bodies.Release(held) }
	for {
		if len(body) == cap(body) {
			more := in.grow(cap(body))
			room := min(int64(more), b.Bodies) // a body of more than there is has all of it
			need := min(room, b.Bodies-held)   // what is copied is held twice for a moment
			if !b.take(ctx, need, held == 0) {
				return nil, free, ErrBusy
			}
			grown := make([]byte, len(body), more)
			copy(grown, body)
			b.bodies.Release(held + need - room)
			body, held = grown, room
		}
		n, err := in.From.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > in.Most:
			return nil, free, TooLarge(in.Most)
		case errors.Is(err, io.EOF):
			return body, free, nil
		case err != nil:
			return nil, free, err
		}
	}
}

// grow is the size of the buffer after one of so many bytes: one more byte than the body has, to see the end.
func (in *Body) grow(from int) int {
	most := in.Most
	if in.Length >= 0 && in.Length < int64(most) {
		most = int(in.Length)
	}
	if most < from {
		most = in.Most // there is more than was announced
	}
	return min(max(part, 2*from), most+1)
}

func (b *Budget) take(ctx context.Context, n int64, wait bool) bool {
	if !wait {
		return n == 0 || b.bodies.TryAcquire(n)
	}
	ctx, cancel := context.WithTimeout(ctx, b.Patience)
	defer cancel()
	return b.bodies.Acquire(ctx, n) == nil
}

// Turn waits until work of that cost may be done; work of more than there is has all of it. done ends that. Requests
// get it in their order.
func (b *Budget) Turn(ctx context.Context, cost int64) (done func(), err error) {
	cost = min(cost, b.Work)
	wait, cancel := context.WithTimeout(ctx, b.Patience)
	defer cancel()
	if b.work.Acquire(wait, cost) != nil {
		return nil, ErrBusy
	}
	return func() { b.work.Release(cost) }, nil
}
