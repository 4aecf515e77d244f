package producer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
)

// Summary is what `plumbline produce --json` prints.
type Summary struct {
	Rows           int64   `json:"rows"`
	Labels         int64   `json:"labels"`
	LogitsMessages int64   `json:"logits_messages"` // control messages are not counted
	LabelMessages  int64   `json:"label_messages"`
	Bytes          int64   `json:"bytes"`
	Again          int64   `json:"messages_sent_again,omitempty"` // some may be there twice, with the same ids
	Partitions     int     `json:"partitions"`
	FirstEvent     string  `json:"first_event"` // event times
	LastEvent      string  `json:"last_event"`
	Seconds        float64 `json:"seconds"`

	first, last int64 // those of FirstEvent and LastEvent
	// Acknowledged is the number of the first row that is not, or whose label is not; of all rows where there is no
	// error.
	Acknowledged int64 `json:"-"`
}

// Options say where a feed goes, and how fast.
type Options struct {
	Logits, Labels string           // topics
	Rate           float64          // rows a second of the wall clock; 0: as fast as possible
	Done           func(rows int64) // called with how many more rows were sent; nil: not called
	Log            *slog.Logger     // of what is sent again; nil: slog.Default()
}

// Send sends all of f, and returns what was sent: all of it is acknowledged where there is no error.
func Send(ctx context.Context, client *kafka.Client, f *feed.Feed, o Options) (Summary, error) {
	var s Summary
	if o.Log == nil {
		o.Log = slog.Default()
	}
	start := time.Now()
	p := newProducer(ctx, client, o.Log)
	err := s.sendAll(ctx, p, f, o, pace{start, o.Rate})
	// The error of a lane is the cause of one in sending.
	if cause := p.close(); cause != nil {
		err = cause
	}
	s.Acknowledged, s.Again = min(f.Owed(), p.owed.Load()), p.again.Load()
	s.Seconds = time.Since(start).Seconds()
	return s, err
}

func (s *Summary) sendAll(ctx context.Context, p *producer, f *feed.Feed, o Options, at pace) error {
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := at.wait(ctx, s.Rows); err != nil {
			return err
		}
		topic := o.Logits
		if m.Stream == feed.Labels {
			topic = o.Labels
		}
		r := message{Row: m.Row, Time: time.Unix(0, m.Time).UTC(), Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := p.send(topic, int(m.Partition), r); err != nil {
			return err
		}
		s.count(m)
		if m.Stream == feed.Logits && o.Done != nil {
			o.Done(int64(m.Rows))
		}
	}
}

func (s *Summary) count(m feed.Message) {
	s.Bytes += int64(len(m.Value))
	if m.Rows == 0 {
		return
	}
	if m.Stream == feed.Logits {
		s.Rows += int64(m.Rows)
		s.LogitsMessages++
	} else {
		s.Labels += int64(m.Rows)
		s.LabelMessages++
	}
	at := func(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
	if s.FirstEvent == "" || m.First < s.first {
		s.FirstEvent, s.first = at(m.First), m.First
	}
	if s.LastEvent == "" || m.Time > s.last {
		s.LastEvent, s.last = at(m.Time), m.Time
	}
}

// pace spreads rows evenly over the wall clock.
type pace struct {
	start time.Time
	rate  float64 // rows per second; 0 = no limit
}

// wait returns when row number n is due.
func (p pace) wait(ctx context.Context, n int64) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	due := p.start.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	left := time.Until(due)
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
