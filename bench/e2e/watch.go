package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline/record"
)

// seen is what readers of a process's outputs saw, and when.
type seen struct {
	mu         sync.Mutex
	calibrated [partitions][]arrival
	snapshots  []arrival // at the end of their label pane, in event time
	decisions  int
	alarms     map[string]arrival // by model, the first that fires
}

// arrival is a record: the time it is of and the time at which it could be read.
type arrival struct{ of, at time.Time }

func (a arrival) latency() time.Duration { return a.at.Sub(a.of) }

// watch reads the outputs of a process until ctx is done.
func watch(ctx context.Context, broker, name string) (s *seen, wait func() error) {
	s = &seen{alarms: map[string]arrival{}}
	errs := make(chan error, 4*partitions)
	for _, topic := range []string{"calibrated", "snapshots", "alerts", "decisions"} {
		for p := range partitions {
			r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{broker}, Topic: name + "." + topic, Partition: p,
				MinBytes: 1, MaxBytes: 16 << 20, MaxWait: time.Second})
			go func() {
				defer r.Close()
				errs <- s.read(ctx, r, topic, p)
			}()
		}
	}
	return s, func() (err error) {
		for range cap(errs) {
			err = errors.Join(err, <-errs)
		}
		return err
	}
}

func (s *seen) read(ctx context.Context, r *kafka.Reader, topic string, p int) error {
	for {
		m, err := r.ReadMessage(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = s.take(topic, p, &m, time.Now())
		}
		if err != nil {
			return err
		}
	}
}

// take notes a record. Those of the calibrated stream carry the timestamp of the record that they are of.
func (s *seen) take(topic string, p int, m *kafka.Message, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch topic {
	case "calibrated":
		s.calibrated[p] = append(s.calibrated[p], arrival{m.Time, now})
	case "decisions":
		s.decisions++
	case "snapshots":
		x, err := record.Decode[record.Snapshot](m.Value)
		if err != nil {
			return err
		}
		s.snapshots = append(s.snapshots, arrival{x.At.Std(), now})
	case "alerts":
		var x record.Alert
		if err := json.Unmarshal(m.Value, &x); err != nil {
			return err
		}
		if _, had := s.alarms[x.Model]; x.State == "firing" && x.Kind == "anytime" && !had {
			s.alarms[x.Model] = arrival{x.At.Std(), now}
		}
	}
	return nil
}

// latencies are sorted.
type latencies []time.Duration

func (l latencies) quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

func of(as []arrival) latencies {
	var out latencies
	for _, a := range as {
		out = append(out, a.latency())
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

// beyond is how long after the checkpoint that has them records could be read. Outputs of a partition that are read
// within less than half an interval of each other are of one checkpoint, and that did not begin before the newest of
// their inputs was appended: so the time since then is an upper bound.
func (s *seen) beyond(interval time.Duration) latencies {
	var out latencies
	for _, as := range s.calibrated {
		for i := 0; i < len(as); {
			j, newest := i+1, as[i].of
			for ; j < len(as) && as[j].at.Sub(as[j-1].at) < interval/2; j++ {
				if as[j].of.After(newest) {
					newest = as[j].of
				}
			}
			for ; i < j; i++ {
				out = append(out, as[i].at.Sub(newest))
			}
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
