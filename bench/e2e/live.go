package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
)

// live is a stream of several models that is sent as it happens: each has its own feed.
type live struct {
	*stream
	models  int
	rate    float64       // rows a second, of all
	seconds float64       // its length
	delay   time.Duration // within which labels come; 0: two seconds
	fault   time.Duration // from its begin until the first model becomes overconfident; 0: none does
	begun   time.Time     // when row 0 was due
	start   time.Time     // its event time
	behind  time.Duration // by which the sender was late at most

	messages []kafka.Message
	rows     int64 // in them
}

// stagger is between the faults of models.
const stagger = 100 * time.Millisecond

// eventTime and sentAt: event time runs as fast as the clock, from another begin.
func (l *live) sentAt(event time.Time) time.Time { return l.begun.Add(event.Sub(l.start)) }

// faultOf is the event time from which a model is overconfident.
func (l *live) faultOf(model int) time.Time {
	return l.start.Add(l.fault + time.Duration(model)*stagger)
}

func modelName(i int) string { return fmt.Sprintf("m%03d", i) }

// encode makes all messages, in the order in which they are due: what is measured must not wait for it.
func (l *live) encode() error {
	feeds, err := l.feeds()
	if err != nil {
		return err
	}
	heads := make([]*feed.Message, len(feeds))
	for {
		m, err := oldest(feeds, heads)
		if err != nil || m == nil {
			return err
		}
		if m.Stream == feed.Logits {
			l.rows += int64(m.Rows)
		}
		l.messages = append(l.messages, l.message(m))
	}
}

// send sends all messages: as they are due, or, with at once, as fast as the broker takes them.
func (l *live) send(ctx context.Context, broker string, atOnce bool) error {
	var failed atomic.Value
	w := newWriter(broker)
	w.Async = true
	w.Completion = func(_ []kafka.Message, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, err)
		}
	}
	defer w.Close()
	const atATime = 256
	l.begun = time.Now().Add(time.Second / 2)
	due := l.begun
	for i := 0; i < len(l.messages) && failed.Load() == nil; {
		if !atOnce {
			time.Sleep(time.Until(l.sentAt(l.messages[i].Time)))
		}
		now, j := time.Now(), i
		for ; j < min(i+atATime, len(l.messages)); j++ {
			k := &l.messages[j]
			if at := l.sentAt(k.Time); at.After(due) { // else it has waited for more rows while others were due
				due = at
			}
			if !atOnce && due.After(now) {
				break
			}
			if !atOnce {
				l.behind = max(l.behind, now.Sub(due))
				k.Time = now
			}
		}
		if err := w.WriteMessages(ctx, l.messages[i:j]...); err != nil {
			return err
		}
		i = j
	}
	err, _ := failed.Load().(error)
	return err
}

// oldest takes the next message of all feeds; nil after the last.
func oldest(feeds []*feed.Feed, heads []*feed.Message) (*feed.Message, error) {
	best := -1
	for i, f := range feeds {
		if heads[i] == nil {
			m, err := f.Next()
			if errors.Is(err, io.EOF) {
				m.Time = math.MaxInt64
			} else if err != nil {
				return nil, err
			}
			heads[i] = &m
		}
		if best < 0 || heads[i].Time < heads[best].Time {
			best = i
		}
	}
	m := heads[best]
	if m.Time == math.MaxInt64 {
		return nil, nil
	}
	heads[best] = nil
	return m, nil
}

func (l *live) feeds() ([]*feed.Feed, error) {
	l.start = time.Now()
	rate := l.rate / float64(l.models)
	pool := newPool(l.K)
	var feeds []*feed.Feed
	for i := range l.models {
		src := &drawn{pool: pool, model: modelName(i), keys: l.Keys,
			left: int64(l.seconds * rate), wrong: math.MaxInt64,
			random: rand.New(rand.NewPCG(2, uint64(i)))}
		if l.fault > 0 {
			src.wrong = int64(l.faultOf(i).Sub(l.start).Seconds() * rate)
		}
		f, err := feed.New(src, feed.Options{
			Partitions:   partitions,
			EventRate:    rate,
			Start:        l.start.UnixNano(),
			DelayMax:     cmp.Or(l.delay, 2*time.Second),
			InlineLabels: l.Inline,
			Batch:        l.Batch,
			FlushEvery:   500 * time.Millisecond,
			IDPrefix:     "request-" + modelName(i),
			Seed:         uint64(i),
		})
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// pool is rows of logits with the distribution of their label, which is that of a calibrated model, and the logits of
// an overconfident one.
type pool struct {
	k            int
	right, sharp []float32
	below        []float32 // running sums of the probabilities
}

func newPool(k int) *pool {
	const rows = 4096
	p := &pool{k: k, right: make([]float32, rows*k), sharp: make([]float32, rows*k), below: make([]float32, rows*k)}
	random := rand.New(rand.NewPCG(1, uint64(k)))
	for from := 0; from < len(p.right); from += k {
		sum := 0.0
		for i := from; i < from+k; i++ {
			p.right[i] = float32(2 * random.NormFloat64())
			p.sharp[i] = 3 * p.right[i]
			sum += math.Exp(float64(p.right[i]))
			p.below[i] = float32(sum)
		}
		for i := from; i < from+k; i++ {
			p.below[i] /= float32(sum)
		}
	}
	return p
}

// drawn yields random rows of a pool.
type drawn struct {
	*pool
	model      string
	next, left int64
	keys       int // values of the slice column; 1: there is none
	value      [1]string
	wrong      int64 // the first row of the overconfident model
	random     *rand.Rand
}

// Schema implements feed.Source.
func (d *drawn) Schema() feed.Fields {
	return feed.Fields{Model: d.model, Version: "1", K: d.k, Slices: sliceColumns(d.keys)}
}

// Next implements feed.Source.
func (d *drawn) Next(row *feed.Row) error {
	if d.next == d.left {
		return io.EOF
	}
	from := d.random.IntN(len(d.right)/d.k) * d.k
	scores := d.right
	if d.next >= d.wrong {
		scores = d.sharp
	}
	u, label := d.random.Float32(), 0
	for label < d.k-1 && d.below[from+label] <= u {
		label++
	}
	*row = feed.Row{Scores: scores[from : from+d.k], Label: int32(label), Weight: 1}
	if d.keys > 1 {
		d.value[0] = tenantName(d.random.IntN(d.keys))
		row.Slices = d.value[:]
	}
	d.next++
	return nil
}
