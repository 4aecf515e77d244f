//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
)

// phase is a stretch of a stream at one rate.
type phase struct {
	rate float64 // rows a second
	span time.Duration
}

// plan says when each row of a stream comes, in event time that runs with the wall clock. The last phase never ends.
type plan struct {
	start  time.Time
	phases []phase
}

// at is the time of row i.
func (p plan) at(i int64) int64 {
	left, t := float64(i), float64(p.start.UnixNano())
	for n, ph := range p.phases {
		rows := ph.rate * ph.span.Seconds()
		if left < rows || n == len(p.phases)-1 {
			return int64(t + left/ph.rate*1e9)
		}
		left -= rows
		t += float64(ph.span)
	}
	return int64(t)
}

// liveModel is one model version of a live stream.
type liveModel struct {
	name, version string
	rows          *feed.Rows
	cohorts       []string // values of the slice column
}

// liveSource plays its model's rows for ever: every step-th row of the plan, from the first-th.
type liveSource struct {
	liveModel
	plan        plan
	first, step int64
	n           int64
	slices      [1]string
}

func (s *liveSource) Schema() feed.Fields {
	return feed.Fields{Model: s.name, Version: s.version, K: s.rows.K, Times: true, Slices: []string{"cohort"}}
}

func (s *liveSource) Next(row *feed.Row) error {
	// A step that has no divisor with the number of rows visits all of them; cohorts change slower, so that every
	// cohort sees all rows.
	i := int(s.n * 7919 % int64(s.rows.N))
	s.slices[0] = s.cohorts[int(s.n+s.n/int64(len(s.cohorts)))%len(s.cohorts)]
	*row = feed.Row{Time: s.plan.at(s.first + s.n*s.step), Scores: s.rows.Scores[i*s.rows.K : (i+1)*s.rows.K],
		Label: s.rows.Label[i], Weight: 1, Slices: s.slices[:]}
	s.n++
	return nil
}

// pump produces the messages of several models as their time comes.
type pump struct {
	t     testing.TB
	s     settings
	feeds []*feed.Feed
	head  []feed.Message // by feed, the next to go
	w     *kafka.Writer

	rows, labels int64 // written
}

// newPump plays models by turns through plan p; a label follows its row within delay.
func newPump(t testing.TB, s settings, p plan, delay time.Duration, models []liveModel) *pump {
	t.Helper()
	pm := &pump{t: t, s: s}
	for i, m := range models {
		f, err := feed.New(&liveSource{liveModel: m, plan: p, first: int64(i), step: int64(len(models))}, feed.Options{
			Partitions: partitions, DelayMax: delay, Seed: uint64(i), IDPrefix: m.name + m.version, End: true})
		if err != nil {
			t.Fatal(err)
		}
		first, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		pm.feeds, pm.head = append(pm.feeds, f), append(pm.head, first)
	}
	transport := &kafka.Transport{}
	pm.w = &kafka.Writer{Transport: transport, Addr: kafka.TCP(brokers...), RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond, BatchBytes: 6 << 20,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return m.WriterData.(int) })}
	t.Cleanup(func() { _ = pm.w.Close(); transport.CloseIdleConnections() })
	return pm
}

// produce writes what is due at now, in order of time, and reports how much that was.
func (p *pump) produce(now time.Time) (rows int64) {
	const most = 16 << 20 // bytes a request
	for {
		var batch []kafka.Message
		for size := 0; size < most; {
			m, ok := p.take(now.UnixNano())
			if !ok {
				break
			}
			k := kafka.Message{Topic: p.s.topic(m.Stream.String()), Key: m.Key, Value: m.Value,
				Time: time.Unix(0, m.Time), WriterData: int(m.Partition)}
			for _, h := range m.Headers {
				k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
			batch = append(batch, k)
			size += len(m.Value)
			if m.Stream == feed.Logits {
				p.rows += int64(m.Rows)
			} else {
				p.labels += int64(m.Rows)
			}
			rows += int64(m.Rows)
		}
		if len(batch) == 0 {
			return rows
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := p.w.WriteMessages(ctx, batch...)
		cancel()
		if err != nil {
			p.t.Errorf("produce: %v", err)
			return rows
		}
	}
}

// take is the oldest message that is due at now.
func (p *pump) take(now int64) (feed.Message, bool) {
	best := -1
	for i := range p.feeds {
		if p.feeds[i] != nil && p.head[i].Time <= now && (best < 0 || p.head[i].Time < p.head[best].Time) {
			best = i
		}
	}
	if best < 0 {
		return feed.Message{}, false
	}
	m := p.head[best]
	next, err := p.feeds[best].Next()
	switch {
	case errors.Is(err, io.EOF):
		p.feeds[best] = nil
	case err != nil:
		p.t.Errorf("feed: %v", err)
		p.feeds[best] = nil
	}
	p.head[best] = next
	return m, true
}

// finish ends the stream: rows that were made go out, and every label, whenever it was due.
func (p *pump) finish() {
	for _, f := range p.feeds {
		if f != nil {
			f.Finish()
		}
	}
	p.produce(time.Now().Add(24 * time.Hour))
}

// follow produces in real time until ctx is done; tick is told after each write.
func (p *pump) follow(ctx context.Context, tick func(written int64)) {
	for ctx.Err() == nil {
		now := time.Now()
		p.produce(now)
		tick(p.rows)
		select {
		case <-ctx.Done():
		case <-time.After(max(0, 100*time.Millisecond-time.Since(now))):
		}
	}
}

func cohorts(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	return names
}
