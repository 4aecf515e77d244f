package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/plumbline/plumbline/web/reply"
)

// How many answers are made or sent at a time: who reads slowly, or not at all, holds memory. One of the API or of
// /metrics has some MB, one of the history's database up to 16 MiB of records.
const (
	maxAnswers = 32
	maxScrapes = 8
	maxPasts   = 4
)

// turnPatience is how long a request waits for its turn.
var turnPatience = 5 * time.Second

// stalled is how long a client may take nothing of its answer while others wait for a turn.
var stalled = 2 * time.Second

const (
	// piece is how much of an answer is written at a time: what shows whether the client reads.
	piece = 64 << 10
	// sendBuffer is that of a connection. The system's own grows to megabytes, of which a slow reader takes a part that
	// shows only after seconds.
	sendBuffer = 256 << 10
)

// boundSend bounds the bytes of an answer that the system holds for a client.
func boundSend(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if own, ok := c.(*conn); ok {
		c = own.Conn
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return ctx
}

// turns bounds how many answers there are at a time. A client that does not read would keep its turn for as long as
// the server tries to write, and eight of them would end all scrapes for so long. So where others wait, who has taken
// nothing for longest loses its turn, and its connection.
type turns struct {
	free    *semaphore.Weighted
	mu      sync.Mutex
	answers map[*answer]struct{} // being sent
}

func newTurns(n int64) *turns {
	return &turns{free: semaphore.NewWeighted(n), answers: map[*answer]struct{}{}}
}

// answer is the writer of one. It is sent from the first byte on; before, it is being made.
type answer struct {
	http.ResponseWriter
	of    *turns
	moved time.Time // when the client took something; under of.mu
}

// inTurn refuses requests that cannot have their turn soon.
func (t *turns) inTurn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.take(r.Context()) {
			w.Header().Set("Retry-After", "1")
			reply.Error(w, http.StatusServiceUnavailable, "too many requests at a time: ask again")
			return
		}
		defer t.free.Release(1)
		a := &answer{ResponseWriter: w, of: t}
		defer t.sent(a)
		next.ServeHTTP(a, r)
	})
}

func (t *turns) take(ctx context.Context) bool {
	for until := time.Now().Add(turnPatience); ctx.Err() == nil && time.Now().Before(until); t.makeRoom() {
		soon, cancel := context.WithTimeout(ctx, stalled)
		err := t.free.Acquire(soon, 1)
		if cancel(); err == nil {
			return true
		}
	}
	return false
}

// makeRoom ends the answer of which nothing was taken for longest, if that is too long.
func (t *turns) makeRoom() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var slowest *answer
	for a := range t.answers {
		if slowest == nil || a.moved.Before(slowest.moved) {
			slowest = a
		}
	}
	if slowest != nil && time.Since(slowest.moved) >= stalled {
		delete(t.answers, slowest)
		_ = http.NewResponseController(slowest.ResponseWriter).SetWriteDeadline(time.Now())
	}
}

// sent says that an answer has been sent: its connection may have the next one.
func (t *turns) sent(a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.answers, a)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (n int, err error) {
	a.moves(true)
	for len(p) > 0 && err == nil {
		var m int
		m, err = a.ResponseWriter.Write(p[:min(piece, len(p))])
		n, p = n+m, p[m:]
		a.moves(false)
	}
	return n, err
}

// moves notes that the client has taken something. One that was ended does not come back.
func (a *answer) moves(first bool) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if first && a.moved.IsZero() {
		a.of.answers[a] = struct{}{}
	}
	a.moved = time.Now()
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
