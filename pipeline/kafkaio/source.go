package kafkaio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline"
)

// Spec names the input of a source: one partition number of one or two topics.
type Spec struct {
	Client      *kafka.Client
	Topics      map[pipeline.Input]string
	Partition   int
	Next        map[pipeline.Input]int64 // first offsets; -1 = the log's start
	Until       map[pipeline.Input]int64 // first offsets not to read; absent or -1 = never ends
	MaxBytes    int
	IdleTimeout time.Duration // 0 = inputs are never idle
	MaxAhead    time.Duration // records further ahead of the clock than this are marked; 0 = none are
	Clock       *Clock        // nil: the process's own
	Commit      func(ctx context.Context, next map[string]int64) error
	Gate        *Gate // nil: always open
	// ReportPause makes the source hand out a record with Paused set each time the gate is closed.
	ReportPause bool
	// Doubt, which may be nil, is called after a failed read, before further records are handed out.
	Doubt func()
	Log   *slog.Logger
}

// Source merges the topics of one partition. If both have records, the older one goes first, which keeps few rows
// waiting in the join. Results do not depend on it.
type Source struct {
	spec   Spec
	cancel context.CancelFunc
	in     []*input
	order  []pipeline.Input
	news   news
	paused bool        // the gate was closed when it was last asked
	halted atomic.Bool // the same, for other goroutines

	out, shown atomic.Uint64 // records and notices handed out; those of them that the task's status shows
	tracked    atomic.Bool   // shown is reported
}

type input struct {
	f     *fetcher
	queue []pipeline.Record
	at    *part // the part that queue is from
	gone  *part // the part before: its last record may still be in use
	since time.Time
	idle  bool
	// No timestamp up to this one was too far ahead of the clock when a record of the part was handed out.
	believed pipeline.Time
	ended    bool

	// How often idle changed since the log had it, and when the log last had each kind of change.
	untold int
	told   map[bool]time.Time

	// For other goroutines.
	idleAt     atomic.Int64 // when it will be idle if nothing comes, in Unix nanoseconds; 0 = never, or it is
	silent     atomic.Int64 // since when nothing has come, in Unix nanoseconds; 0: it is idle
	handed     atomic.Int64 // offset after the last record handed out; -1 = none
	committed  atomic.Int64 // offset up to which everything is in a checkpoint
	last       atomic.Int64 // timestamp of the last record handed out
	reached    atomic.Int64 // every record before this offset was handed out, and nothing else waits; -1 = not known
	headOffset atomic.Int64 // of the first record in queue; -1 = none
	headTime   atomic.Int64
}

// NewSource starts reading.
func NewSource(spec Spec) *Source {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Source{spec: spec, cancel: cancel, news: newNews()}
	for _, in := range []pipeline.Input{pipeline.Logits, pipeline.Labels, pipeline.Panes} {
		topic, ok := spec.Topics[in]
		if !ok {
			continue
		}
		until, bounded := spec.Until[in]
		if !bounded {
			until = -1
		}
		i := newInput(&fetcher{
			client:    spec.Client,
			input:     in,
			topic:     topic,
			partition: spec.Partition,
			maxBytes:  spec.MaxBytes,
			asks:      max(spec.MaxBytes/askedOf, 1),
			until:     until,
			gate:      spec.Gate,
			news:      s.news,
			doubt:     spec.Doubt,
			log:       spec.Log,
			next:      spec.Next[in],
			memory:    lent(in),
			quiet:     quietFor(spec.IdleTimeout),
		})
		i.reset(spec.IdleTimeout)
		s.in = append(s.in, i)
		s.order = append(s.order, in)
		go i.f.run(ctx)
	}
	spec.Gate.add(s)
	return s
}

// askedOf is the divisor of Spec.MaxBytes for one request: by default it asks for 1 MiB, which is still in the
// processor's cache when it is decoded.
const askedOf = 8

// lent returns memory for an input's records that is reused when they were taken; none for panes, whose bytes model
// tasks keep.
func lent(in pipeline.Input) *memory {
	if in == pipeline.Panes {
		return nil
	}
	return new(memory)
}

func newInput(f *fetcher) *input {
	f.out = make(chan *part, fetchQueue)
	f.end.Store(-1)
	f.done.Store(f.next)
	in := &input{f: f, told: map[bool]time.Time{}}
	in.handed.Store(f.next)
	in.committed.Store(f.next)
	in.headOffset.Store(-1)
	f.heard.Store(math.MinInt64)
	f.resumed.Store(math.MinInt64)
	in.reached.Store(-1)
	return in
}

// Next implements pipeline.Source.
func (s *Source) Next(ctx context.Context) (pipeline.Record, error) {
	r, err := s.hand(ctx)
	if err == nil {
		s.out.Add(1)
	}
	return r, err
}

func (s *Source) hand(ctx context.Context) (pipeline.Record, error) {
	for _, in := range s.in {
		in.forget()
	}
	for {
		if paused, err := s.waitOpen(ctx); paused || err != nil {
			return pipeline.Record{Input: s.order[0], Paused: paused}, err
		}
		for _, in := range s.in {
			in.fill()
		}
		if err := s.failed(); err != nil {
			return pipeline.Record{}, err
		}
		if best := s.pick(); best != nil {
			r := best.hand()
			// No producer and no broker of today leaves a timestamp out. A row of one that did is as far ahead as it
			// says: else a single such record could move all clocks.
			r.Time = max(r.Time, 1)
			r.Ahead = s.ahead(best, r.Time)
			if !r.SaysIdle() { // else a source that is idle would hold all back for the timeout once more
				s.tell(best, false)
				best.reset(s.spec.IdleTimeout)
			}
			return r, nil
		}
		ended := true
		for i, in := range s.in {
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

// ahead reports whether the timestamp of an input's record is too far ahead of the clock, which is looked at once for
// most of the records of a fetch.
func (s *Source) ahead(in *input, t pipeline.Time) bool {
	if s.spec.MaxAhead > 0 && t > in.believed {
		in.believed = s.spec.Clock.Now().Add(s.spec.MaxAhead).UnixNano()
		return t > in.believed
	}
	return false
}

// failed returns the error of an input that has handed out all records before the error: the other input must not run
// ahead.
func (s *Source) failed() error {
	for _, in := range s.in {
		if in.ended && len(in.queue) == 0 && !errors.Is(in.f.err, io.EOF) {
			return in.f.err
		}
	}
	return nil
}

// waitOpen waits while the gate is closed; report says that the task must first get the notice of the pause. A pause
// does not count as idle time: after it every input counts as active again.
func (s *Source) waitOpen(ctx context.Context) (report bool, err error) {
	opened := s.spec.Gate.wait()
	if opened == nil && !s.paused {
		return false, nil
	}
	if opened != nil {
		if !s.paused {
			s.paused = true
			s.halted.Store(true)
			for _, in := range s.in {
				in.idleAt.Store(0)
			}
			if s.spec.ReportPause {
				return true, nil
			}
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	s.paused = false
	s.halted.Store(false)
	for _, in := range s.in {
		in.reset(s.spec.IdleTimeout)
	}
	return false, nil
}

// reset restarts the time after which an input is idle.
func (in *input) reset(timeout time.Duration) { in.resetAt(time.Now(), timeout) }

func (in *input) resetAt(t time.Time, timeout time.Duration) {
	in.since, in.idle = t, false
	in.silent.Store(in.since.UnixNano())
	if timeout > 0 {
		in.idleAt.Store(in.since.Add(timeout).UnixNano())
	}
}

// Buffered implements pipeline.Buffered.
func (s *Source) Buffered() bool {
	if s.spec.Gate.wait() != nil {
		return false
	}
	for _, in := range s.in {
		in.fill()
	}
	return s.pick() != nil
}

// pick returns the input whose next record is oldest; nil if none may be handed out yet, because an input that is not
// at the log's end may have an older one.
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

// becameIdle returns the notice that an input is idle: it had no message for the idle timeout although brokers
// answered. While no broker answers, producers cannot send either, so after that time every input counts as active
// again, as after a pause.
func (s *Source) becameIdle(i int) (pipeline.Record, bool) {
	in := s.in[i]
	if s.spec.IdleTimeout <= 0 || in.idle || in.ended || !in.caughtUp() {
		return pipeline.Record{}, false
	}
	if at := start.Add(time.Duration(in.f.resumed.Load())); at.After(in.since) {
		in.resetAt(at, s.spec.IdleTimeout)
	}
	if in.f.heard.Load() < sinceStart(in.since.Add(s.spec.IdleTimeout)) {
		return pipeline.Record{}, false
	}
	s.tell(in, true)
	in.idle = true
	in.idleAt.Store(0)
	in.silent.Store(0)
	return pipeline.Record{Input: s.order[i], Topic: s.spec.Topics[s.order[i]], Partition: int32(s.spec.Partition),
		Idle: true}, true
}

// tellEvery limits the log to one line of each kind a minute and input.
const tellEvery = time.Minute

// tell logs that an input is idle and no longer waited for, or active again.
func (s *Source) tell(in *input, idle bool) {
	if in.idle == idle || in.f.input == pipeline.Panes {
		return
	}
	in.untold++
	if time.Since(in.told[idle]) < tellEvery {
		return
	}
	text := "a partition has messages again, and is waited for"
	if idle {
		text = "a partition had no message for event_time.idle_timeout: nobody waits for it, its next rows may be late"
	}
	s.spec.Log.Info(text, "topic", in.f.topic, "partition", in.f.partition, "changes", in.untold)
	in.untold, in.told[idle] = 0, time.Now()
}

// wait blocks until some input has records or there is news: an input that is at its log's end lets the other go on, or
// is idle.
func (s *Source) wait(ctx context.Context) error {
	var chans [2]chan *part
	for i, in := range s.in {
		if i < len(chans) && len(in.queue) == 0 && !in.ended {
			chans[i] = in.f.out
		}
	}
	select {
	case p, ok := <-chans[0]:
		s.in[0].take(p, ok)
	case p, ok := <-chans[1]:
		s.in[1].take(p, ok)
	case <-s.news:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (in *input) fill() {
	if len(in.queue) > 0 || in.ended {
		return
	}
	at := in.f.position() // before the look at out: what it has gone past is there
	select {
	case p, ok := <-in.f.out:
		in.take(p, ok)
	default:
		in.reached.Store(at)
	}
}

func (in *input) take(p *part, ok bool) {
	if !ok {
		in.ended = true
		return
	}
	in.gone, in.at, in.queue, in.believed = in.at, p, p.records, 0
	in.noteHead()
}

// forget frees the memory of records that nobody uses any more: the next record is asked for.
func (in *input) forget() {
	if in.f.memory != nil {
		in.f.memory.done(in.gone)
	}
	in.gone = nil
}

// hand removes and returns the first record of the queue.
func (in *input) hand() pipeline.Record {
	r := in.queue[0]
	in.queue = in.queue[1:]
	in.handed.Store(r.Offset + 1)
	in.last.Store(r.Time)
	in.noteHead()
	return r
}

// caughtUp reports whether everything up to the log's last known end has been handed out. Offsets after the last
// record may be markers or compacted away, so the fetcher's position counts.
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
		if !in.caughtUp() || in.f.unread() != nil {
			return false
		}
	}
	return true
}

// Commit implements pipeline.Source.
func (s *Source) Commit(ctx context.Context, next map[pipeline.Input]int64) error {
	for i, in := range s.in {
		in.committed.Store(max(in.committed.Load(), next[s.order[i]]))
	}
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
	s.spec.Gate.remove(s)
	s.cancel()
	for _, in := range s.in {
		for range in.f.out { // until the fetcher has gone
		}
	}
	return nil
}
