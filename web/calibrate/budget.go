package calibrate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bounds of what all requests hold at a time. TestWorkIsBounded measures what a byte of a body costs.
const (
	// maxBodies is how many bytes of bodies are held.
	maxBodies = 128 << 20
	// maxWork is about how many bytes are in use for decoding, calibrating and encoding.
	maxWork = 512 << 20
	// costJSON and costArrow are about how many bytes of memory a byte of a body takes on the way: the JSON body with
	// the highest cost has rows of two one-digit numbers.
	costJSON  = 40
	costArrow = 32
	// patience is how long a request waits for its turn.
	patience = 5 * time.Second
)

// errBusy is what a request gets that cannot have the memory it needs now.
var errBusy = errors.New("too many bytes in work: ask again")

// budget bounds the memory of all requests at a time.
type budget struct {
	bodies, work *semaphore.Weighted
}

func newBudget() *budget {
	return &budget{bodies: semaphore.NewWeighted(maxBodies), work: semaphore.NewWeighted(maxWork)}
}

// read reads a body of at most MaxBody bytes. It holds memory for what has come, not for what a client announces: a
// slow client holds little. free gives it back.
func (b *budget) read(w http.ResponseWriter, r *http.Request) (body []byte, free func(), err error) {
	const part = 64 << 10
	held := int64(0)
	free = func() { b.bodies.Release(held) }
	in := http.MaxBytesReader(w, r.Body, MaxBody)
	for {
		if len(body) == cap(body) {
			// What is copied is held twice for a moment.
			more := max(part, 2*cap(body))
			if n := int(min(r.ContentLength, MaxBody)) + 1; n > cap(body) { // one more byte to see the end
				more = min(more, n)
			}
			if !b.bodies.TryAcquire(int64(more)) {
				return nil, free, errBusy
			}
			grown := make([]byte, len(body), more)
			copy(grown, body)
			b.bodies.Release(held)
			body, held = grown, int64(more)
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, free, nil
		}
		if err != nil {
			return nil, free, err
		}
	}
}

// turn waits until a body may be worked on; done ends that.
func (b *budget) turn(ctx context.Context, size int, kind string) (done func(), err error) {
	cost := int64(size) * costJSON
	if kind == typeArrow {
		cost = int64(size) * costArrow
	}
	cost = min(cost, maxWork)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.work.Acquire(wait, cost); err != nil {
		return nil, errBusy
	}
	return func() { b.work.Release(cost) }, nil
}
