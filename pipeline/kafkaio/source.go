package kafkaio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline"
)

// Spec is what a source reads: one partition number of one or two topics.
type Spec struct {
	Client      *kafka.Client
	Topics      map[pipeline.Input]string
	Partition   int
	Next        map[pipeline.Input]int64 // first offsets; -1 = the log's start
	Until       map[pipeline.Input]int64 // first offsets not to read; absent or -1 = never ends
	MaxBytes    int
	IdleTimeout time.Duration // 0 = inputs are never idle
	Commit      func(ctx context.Context, next map[string]int64) error
	Log         *slog.Logger
}

// Source merges the topics of one partition. Where both have records, the one whose record is older goes first:
// that keeps few rows waiting in the join. Results do not depend on it.
type Source struct {
	spec   Spec
	cancel context.CancelFunc
	in     []*input
	order  []pipeline.Input
}

type input struct {
	f      *fetcher
	queue  []pipeline.Record
	handed int64 // offset after the last record handed out; -1 = none
	since  time.Time
	idle   bool
	ended  bool
}

// NewSource starts reading.
func NewSource(spec Spec) *Source {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Source{spec: spec, cancel: cancel}
	for _, in := range []pipeline.Input{pipeline.Logits, pipeline.Labels, pipeline.Panes} {
		topic, ok := spec.Topics[in]
		if !ok {
			continue
		}
		until, bounded := spec.Until[in]
		if !bounded {
			until = -1
		}
		f := &fetcher{client: spec.Client, input: in, topic: topic, partition: spec.Partition, maxBytes: spec.MaxBytes, until: until,
			log: spec.Log, out: make(chan []pipeline.Record, fetchQueue), next: spec.Next[in]}
		f.end.Store(-1)
		s.in = append(s.in, &input{f: f, handed: spec.Next[in], since: time.Now()})
		s.order = append(s.order, in)
		go f.run(ctx)
	}
	return s
}

// poll is how often a source that waits looks whether an input has become idle.
const poll = 20 * time.Millisecond

// Next implements pipeline.Source.
func (s *Source) Next(ctx context.Context) (pipeline.Record, error) {
	for {
		for _, in := range s.in {
			in.fill()
		}
		if best := s.pick(); best != nil {
			r := best.queue[0]
			best.queue = best.queue[1:]
			best.handed, best.since, best.idle = r.Offset+1, time.Now(), false
			return r, nil
		}
		ended := true
		for i, in := range s.in {
			if in.ended && !errors.Is(in.f.err, io.EOF) {
				return pipeline.Record{}, in.f.err
			}
			ended = ended && in.ended
			if r, ok := s.becameIdle(i); ok {
				return r, nil
			}
		}
		if ended {
			return pipeline.Record{}, io.EOF
		}
		if err := s.wait(ctx); err != nil {
			return pipeline.Record{}, err
		}
	}
}

// pick returns the input whose next record is oldest; nil where nothing may be handed out yet: an input that is
// not at the log's end may hold an older one.
func (s *Source) pick() *input {
	var best *input
	for _, in := range s.in {
		if len(in.queue) == 0 {
			if !in.ended && !in.caughtUp() {
				return nil
			}
			continue
		}
		if best == nil || in.queue[0].Time < best.queue[0].Time {
			best = in
		}
	}
	return best
}

func (s *Source) becameIdle(i int) (pipeline.Record, bool) {
	in := s.in[i]
	if s.spec.IdleTimeout <= 0 || in.idle || in.ended || !in.caughtUp() || time.Since(in.since) < s.spec.IdleTimeout {
		return pipeline.Record{}, false
	}
	in.idle = true
	return pipeline.Record{Input: s.order[i], Idle: true}, true
}

// wait blocks until some input has records, for at most poll.
func (s *Source) wait(ctx context.Context) error {
	t := time.NewTimer(poll)
	defer t.Stop()
	var chans [2]chan []pipeline.Record
	for i, in := range s.in {
		if i < len(chans) && len(in.queue) == 0 && !in.ended {
			chans[i] = in.f.out
		}
	}
	select {
	case rs, ok := <-chans[0]:
		s.in[0].take(rs, ok)
	case rs, ok := <-chans[1]:
		s.in[1].take(rs, ok)
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (in *input) fill() {
	if len(in.queue) > 0 || in.ended {
		return
	}
	select {
	case rs, ok := <-in.f.out:
		in.take(rs, ok)
	default:
	}
}

func (in *input) take(rs []pipeline.Record, ok bool) {
	if !ok {
		in.ended = true
		return
	}
	in.queue = rs
}

// caughtUp reports whether everything up to the log's end, as last told, has been handed out. Offsets after the
// last record may be markers or compacted away, so the fetcher's position counts.
func (in *input) caughtUp() bool {
	if in.ended {
		return true
	}
	end, position := in.f.end.Load(), in.f.position()
	return end >= 0 && position >= end && len(in.f.out) == 0 && len(in.queue) == 0
}

// CaughtUp implements pipeline.Source.
func (s *Source) CaughtUp() bool {
	for _, in := range s.in {
		if !in.caughtUp() {
			return false
		}
	}
	return true
}

// Commit implements pipeline.Source.
func (s *Source) Commit(ctx context.Context, next map[pipeline.Input]int64) error {
	if s.spec.Commit == nil {
		return nil
	}
	by := map[string]int64{}
	for in, o := range next {
		if topic, ok := s.spec.Topics[in]; ok && o >= 0 {
			by[topic] = o
		}
	}
	return s.spec.Commit(ctx, by)
}

// Close implements pipeline.Source.
func (s *Source) Close() error {
	s.cancel()
	for _, in := range s.in {
		for range in.f.out { // until the fetcher has gone
		}
	}
	return nil
}
