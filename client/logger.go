package client

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// Options of a logger.
type Options struct {
	Version string
	// To is kafka://HOST:PORT[,HOST:PORT…][?logits=TOPIC&labels=TOPIC], or the http address of a plumbline process.
	To string
	// MaxBytes bounds what waits; 64 MiB if it is 0.
	MaxBytes int
	// Block is how long a call may wait for room.
	Block time.Duration
	// Sample keeps that share of the ids, the same for labels, with the weight that makes up for it; all if it is 0.
	Sample float64
	// Linger is how long rows wait for others; half a second if it is 0.
	Linger time.Duration
	// Give up rows after so long without anybody who takes them; five minutes if it is 0.
	Patience time.Duration
	// Transport has TLS and users of Kafka; HTTP those of a plumbline process.
	Transport kafka.RoundTripper
	HTTP      *http.Client
	Token     string // of a Bearer, over HTTP
	// OnDrop is called with the rows that will not arrive, and why.
	OnDrop func(rows int, why string)
	Log    *slog.Logger
}

// Rows are predictions of one call. The caller may change them after it.
type Rows struct {
	IDs            []string
	Logits, Probs  []float32 // one of them, row after row
	Classes        int
	Labels         []int32   // where they are known already; -1 is unknown
	Features       []float32 // row after row
	Served, Weight []float32
	Times          []time.Time         // of the predictions; none, or the zero time: now
	Slices         map[string][]string // one value for all rows, or one for each; "" is none
}

// Counts are those of rows. Logged is the sum of all others.
type Counts struct {
	Logged, SampledOut, Dropped, Refused, Failed, Sent, Waiting int64
	WaitingBytes                                                int
	Errors                                                      map[string]int64
}

// batchRows is about how many rows go into one message.
const batchRows = 4000

// Logger sends rows in the background. Its methods may be called at the same time.
type Logger struct {
	options   Options
	transport transport
	below     uint64 // of the hash of ids that are kept
	noRoom    string // is why calls are dropped

	mu     sync.Mutex
	calls  []*call
	rows   int64
	bytes  int
	stats  Counts
	room   chan struct{} // closed when there is more
	closed bool
	warned time.Time

	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	ending chan struct{}
	done   chan struct{}
}

// minSample is the share that makes the largest weight which plumbline takes.
const minSample = 1. / (1 << 20)

// New returns a logger, or an error where an option cannot be used. It makes no connection yet.
func New(model string, o Options) (*Logger, error) {
	o.MaxBytes, o.Linger = cmp.Or(o.MaxBytes, 64<<20), cmp.Or(o.Linger, time.Second/2)
	o.Patience, o.Sample = cmp.Or(o.Patience, 5*time.Minute), cmp.Or(o.Sample, 1)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := checkModel(model, o.Version); err != nil {
		return nil, err
	}
	if !(o.Sample >= minSample && o.Sample <= 1) {
		return nil, fmt.Errorf("sample %g: must be at least 2^-20, and at most 1", o.Sample)
	}
	if min(o.Linger, o.Patience) < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("linger %s, patience %s, max bytes %d: none may be below 0", o.Linger, o.Patience,
			o.MaxBytes)
	}
	t, err := newTransport(model, &o)
	if err != nil {
		return nil, err
	}
	l := &Logger{options: o, transport: t, below: uint64(o.Sample * (1 << 32)), wake: make(chan struct{}, 1),
		room: make(chan struct{}), ending: make(chan struct{}), done: make(chan struct{}),
		noRoom: fmt.Sprintf("no room: %d bytes wait for %s", o.MaxBytes, redacted(o.To))}
	l.stats.Errors = map[string]int64{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.run()
	return l, nil
}

// Log sends predictions. Rows that plumbline would not take are refused, and the others of the call are sent: an id is
// of 1 byte to 64 KiB; the value of a slice is UTF-8 of at most 256 bytes, and so is its name.
func (l *Logger) Log(r Rows) { l.put(newCall(&r)) }

// Label sends what was true: classes from 0, by the ids of the predictions.
func (l *Logger) Label(ids []string, y []int32) {
	r := Rows{IDs: ids, Labels: y}
	c := newCall(&r)
	c.labels = true
	l.put(c)
}

// put takes a call in, or counts why not.
func (l *Logger) put(c *call) {
	if err := c.check(); err != nil {
		l.lose(c.rows(), err.Error(), "", countRefused)
		return
	}
	if l.refuse(c); c.n == 0 {
		return
	}
	out := l.sample(c)
	if c.n == 0 { // it needs no room, and nothing would give room back
		l.mu.Lock()
		l.stats.Logged += int64(out)
		l.stats.SampledOut += int64(out)
		l.mu.Unlock()
		return
	}
	full, why := l.admit(c, out)
	if why != "" {
		l.lose(c.n, why, "", func(s *Counts, n int64) {
			s.Logged += n + int64(out)
			s.SampledOut += int64(out)
			s.Dropped += n
		})
		return
	}
	if full {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func countRefused(s *Counts, n int64) { s.Logged += n; s.Refused += n }

// refuse takes the rows out of a call that plumbline would not take, and counts them by what is wrong.
func (l *Logger) refuse(c *call) {
	faults := c.faults()
	if len(faults) == 0 {
		return
	}
	var keep []int
	rows := map[string][]int{}
	for i := range c.n {
		if why := faults[i]; why != "" {
			rows[why] = append(rows[why], i)
		} else {
			keep = append(keep, i)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(rows)) {
		first := rows[why][0]
		l.lose(len(rows[why]), why, fmt.Sprintf(" (row %d of the call, id %.40q)", first, c.IDs[first]), countRefused)
	}
	c.choose(keep)
}

// sample leaves the rows whose id's hash is below the share, and returns how many others there were.
func (l *Logger) sample(c *call) int {
	if l.below >= 1<<32 {
		return 0
	}
	var keep []int
	for i, id := range c.IDs {
		if uint64(crc32.ChecksumIEEE([]byte(id))) < l.below {
			keep = append(keep, i)
		}
	}
	out := c.n - len(keep)
	c.choose(keep)
	if !c.labels {
		if len(c.Weight) == 0 {
			c.Weight = slices.Repeat([]float32{1}, c.n)
		}
		for i := range c.Weight {
			c.Weight[i] = float32(float64(c.Weight[i]) / l.options.Sample)
		}
	}
	return out
}

// admit takes in a call, of which so many rows were left out, and waits for room as long as it may. full tells that
// there are rows for a message; why is what kept the call out.
func (l *Logger) admit(c *call, out int) (full bool, why string) {
	size := c.own()
	var timeout <-chan time.Time
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			why = "the logger is closed"
		case l.bytes+size <= l.options.MaxBytes:
			l.bytes += size
			l.stats.Logged += int64(c.n + out)
			l.stats.SampledOut += int64(out)
			l.calls = append(l.calls, c)
			l.rows += int64(c.n)
			full = l.rows >= batchRows
			l.mu.Unlock()
			return full, ""
		case l.options.Block <= 0:
			why = l.noRoom
		}
		room := l.room
		l.mu.Unlock()
		if why != "" {
			return false, why
		}
		if timeout == nil {
			t := time.NewTimer(l.options.Block)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-room:
		case <-timeout:
			return false, l.noRoom
		}
	}
}

// lose counts rows that will not arrive by why, and says so once a minute, with where the first of them is.
func (l *Logger) lose(rows int, why, where string, count func(*Counts, int64)) {
	l.mu.Lock()
	count(&l.stats, int64(rows))
	if _, ok := l.stats.Errors[why]; ok || len(l.stats.Errors) < 32 {
		l.stats.Errors[why] += int64(rows)
	}
	l.mu.Unlock()
	if l.options.OnDrop != nil && rows > 0 {
		l.options.OnDrop(rows, why+where)
	}
	l.warn(why + where)
}

func (l *Logger) warn(why string) {
	l.mu.Lock()
	quiet := time.Since(l.warned) < time.Minute
	if !quiet {
		l.warned = time.Now()
	}
	l.mu.Unlock()
	if !quiet {
		l.options.Log.Warn("plumbline: rows do not get through", "why", why, "stats", l.Stats())
	}
}

// free gives back the room of rows that are on their way no more.
func (l *Logger) free(rows, size int) {
	l.mu.Lock()
	l.rows -= int64(rows)
	l.bytes -= size
	close(l.room)
	l.room = make(chan struct{})
	l.mu.Unlock()
}

// Stats says what became of the rows so far.
func (l *Logger) Stats() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting, s.WaitingBytes, s.Errors = l.rows, l.bytes, map[string]int64{}
	for k, v := range l.stats.Errors {
		s.Errors[k] = v
	}
	return s
}

// Close sends what waits until ctx is done, and ends. What is left then is dropped.
func (l *Logger) Close(ctx context.Context) Counts {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if !again {
		close(l.ending)
	}
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	l.cancel()
	<-l.done
	return l.Stats()
}

// run sends until the end.
func (l *Logger) run() {
	defer close(l.done)
	tick := time.NewTicker(l.options.Linger)
	defer tick.Stop()
	for {
		ending := false
		select {
		case <-tick.C:
		case <-l.wake:
		case <-l.ending:
			ending = true
		}
		for {
			calls := l.next()
			if len(calls) == 0 {
				break
			}
			l.send(calls)
		}
		if ending {
			return
		}
	}
}

// next are the calls of the next message: the oldest, and those after it of its shape.
func (l *Logger) next() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, rows := 0, 0
	for n < len(l.calls) && rows < batchRows {
		rows += l.calls[n].n
		n++
	}
	var out, rest []*call
	for _, c := range l.calls[:n] {
		if len(out) == 0 || out[0].shape == c.shape {
			out = append(out, c)
		} else {
			rest = append(rest, c)
		}
	}
	l.calls = append(rest, l.calls[n:]...)
	return out
}

// send sends calls of one shape, and counts what became of them.
func (l *Logger) send(calls []*call) {
	all := join(calls)
	size := 0
	for _, c := range calls {
		size += c.bytes
	}
	defer l.free(all.n, size)
	ctx, cancel := context.WithTimeout(l.ctx, l.options.Patience)
	defer cancel()
	l.transport.send(ctx, all, func(rows int, err error) {
		switch {
		case err == nil:
			l.mu.Lock()
			l.stats.Sent += int64(rows)
			l.mu.Unlock()
		case l.ctx.Err() != nil:
			l.lose(rows, "closed before they were sent", "", func(s *Counts, n int64) { s.Dropped += n })
		default:
			l.lose(rows, err.Error(), "", func(s *Counts, n int64) { s.Failed += n })
		}
	}, l.warn)
}
