package kafkaio

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline"
)

// Lag is how far reading is behind the log.
type Lag struct {
	// Offsets is the number of offsets between the next record and the end of the log, which is its last stable
	// offset: an open transaction is no lag. It is 0 once the end has been reached. It counts offsets, not records:
	// markers, aborted records and gaps left by compaction are among them until they have been passed.
	Offsets int64
	// Oldest is the timestamp of the first record that was not handed out or, if that is not known, of the last one
	// that was; 0 if nothing is left or nothing is known.
	Oldest pipeline.Time
}

// Lags returns the lag by input; an input whose end is not known, also since brokers refuse to read it, is absent. Any
// goroutine may call it.
func (s *Source) Lags() map[pipeline.Input]Lag {
	out := map[pipeline.Input]Lag{}
	for i, in := range s.in {
		if l, ok := in.lag(); ok && in.f.unread() == nil {
			out[s.order[i]] = l
		}
	}
	return out
}

// lag returns the lag of one input by the end that was last told; false while none was.
func (in *input) lag() (Lag, bool) {
	end := in.f.end.Load()
	if end < 0 {
		return Lag{}, false
	}
	// Records between position and end have not been fetched; those before it wait here, or were handed out.
	from, oldest := in.handed.Load(), in.last.Load()
	if at := in.headOffset.Load(); at >= 0 {
		from, oldest = at, in.headTime.Load()
	} else if len(in.f.out) == 0 {
		from = max(from, in.f.position())
	}
	l := Lag{Offsets: max(0, end-max(from, 0)), Oldest: oldest}
	if l.Offsets == 0 {
		l.Oldest = 0
	}
	return l, true
}

// noteHead tells Lag which record is first in the queue.
func (in *input) noteHead() {
	if len(in.queue) == 0 {
		in.headOffset.Store(-1)
		return
	}
	in.headTime.Store(in.queue[0].Time)
	in.headOffset.Store(in.queue[0].Offset)
}

// Handed returns, by input, the offset after the last record handed out; -1 if none was. Any goroutine may call it.
func (s *Source) Handed() map[pipeline.Input]int64 {
	out := map[pipeline.Input]int64{}
	for i, in := range s.in {
		out[s.order[i]] = in.handed.Load()
	}
	return out
}

// Mark is a place in a log.
type Mark struct {
	Topic     string
	Partition int
	At        int64 // every record before this offset was handed out
}

// Reached returns the places before which every record of the inputs was handed out. Any goroutine may call it.
func (s *Source) Reached() []Mark {
	var out []Mark
	for _, in := range s.in {
		out = append(out, Mark{in.f.topic, in.f.partition, in.reached.Load()})
	}
	return out
}

// AtEnd asks the brokers whether the logs end at the marks now.
func AtEnd(ctx context.Context, c *kafka.Client, marks []Mark) (bool, error) {
	ask := map[string][]kafka.OffsetRequest{}
	at := map[string]map[int]int64{}
	for _, m := range marks {
		if at[m.Topic] == nil {
			at[m.Topic] = map[int]int64{}
		}
		at[m.Topic][m.Partition] = m.At
		ask[m.Topic] = append(ask[m.Topic], kafka.LastOffsetOf(m.Partition))
	}
	res, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{IsolationLevel: kafka.ReadCommitted, Topics: ask})
	if err != nil {
		return false, fmt.Errorf("list the ends of %d logs: %w", len(marks), err)
	}
	told := 0
	for topic, ps := range res.Topics {
		for _, p := range ps {
			if p.Error != nil {
				return false, fmt.Errorf("list the end of %s partition %d: %w", topic, p.Partition, p.Error)
			}
			if p.LastOffset > at[topic][p.Partition] {
				return false, nil
			}
			told++
		}
	}
	return told == len(marks), nil
}

// HandedOut implements pipeline.Visibility.
func (s *Source) HandedOut() uint64 { return s.out.Load() }

// Shown implements pipeline.Visibility.
func (s *Source) Shown(n uint64) {
	s.shown.Store(n)
	s.tracked.Store(true)
}

// Unshown reports whether the task's status lags behind its input: the task has taken records or notices that the
// status does not show, or is about to get the notice that an input is idle. Any goroutine may call it.
func (s *Source) Unshown() bool {
	now := time.Now().UnixNano()
	for _, in := range s.in {
		if at := in.idleAt.Load(); at > 0 && at <= now {
			return true
		}
	}
	return s.tracked.Load() && s.shown.Load() < s.out.Load()
}

// settled reports whether nothing is handed out any more and everything that was has been committed: a task that has
// not seen the pause may take one more record. The news of the pause is no record, and changes the task, too.
func (s *Source) settled() bool {
	if !s.halted.Load() || s.tracked.Load() && s.shown.Load() < s.out.Load() {
		return false
	}
	for _, in := range s.in {
		if in.committed.Load() < in.handed.Load() {
			return false
		}
	}
	return true
}

// Silence is since when an input has had no record, and when it will be idle; Until is zero if it never will. Never
// says that it has had none since it is read, Unread that brokers refuse to read it (see Source.Unread).
type Silence struct {
	Topic         string
	Since, Until  time.Time
	Never, Unread bool
}

// Silent returns the silence of inputs that were read to their end. Idle inputs hold nothing back and are absent. Any
// goroutine may call it.
func (s *Source) Silent() map[pipeline.Input]Silence {
	out := map[pipeline.Input]Silence{}
	for i, in := range s.in {
		since, until := in.silent.Load(), in.idleAt.Load()
		if l, ok := in.lag(); ok && l.Offsets == 0 && since > 0 {
			silence := Silence{Topic: in.f.topic, Since: time.Unix(0, since).UTC(), Never: in.last.Load() == 0,
				Unread: in.f.unread() != nil}
			if until > 0 {
				silence.Until = time.Unix(0, until).UTC()
			}
			out[s.order[i]] = silence
		}
	}
	return out
}
