package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// slowState takes its time to be encoded: while the task stands still, unless it freezes.
type slowState struct {
	*adderState
	takes   time.Duration
	freezes bool
}

func (s slowState) AppendState(dst []byte) ([]byte, error) {
	time.Sleep(s.takes)
	return s.adderState.AppendState(dst)
}

func (s slowState) Freeze() func(dst []byte) ([]byte, error) {
	if !s.freezes {
		return nil
	}
	later := s.adderState.Freeze()
	return func(dst []byte) ([]byte, error) {
		time.Sleep(s.takes)
		return later(dst)
	}
}

// largeAdder is an adder that is never full, with a slow state.
type largeAdder struct {
	*adder
	slow slowState
}

func (a largeAdder) Sections() []Section {
	a.slow.adderState = &a.state
	return []Section{{Name: "sum", State: a.slow}}
}

func (a largeAdder) Decided() Outputs {
	out := a.adder.Decided()
	out.Full = false
	return out
}

// tick is the time between two records of a tickSource.
const tick = 10 * time.Millisecond

// tickSource has a record every tick, until it was read for a time.
type tickSource struct {
	listSource
	end time.Time
}

func (s *tickSource) Next(ctx context.Context) (Record, error) {
	select {
	case <-time.After(tick):
	case <-ctx.Done():
		return Record{}, ctx.Err()
	}
	if time.Now().After(s.end) {
		s.values = s.values[:0]
	}
	return s.listSource.Next(ctx)
}

func runLarge(t *testing.T, r *rig, slow slowState, length time.Duration) {
	t.Helper()
	for range 10_000 {
		r.source.values = append(r.source.values, 1)
	}
	src := &tickSource{listSource: *r.source, end: time.Now().Add(length)}
	err := Run(t.Context(), r.runner, func() (Registered, error) {
		task, err := r.build()
		task.Task = largeAdder{r.task, slow}
		return task, err
	}, func(map[Input]int64) (Opened, error) { return Opened{Source: src}, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestLargeStatesAreCopiedLessOften: however short the interval, a task has most of its time for records.
func TestLargeStatesAreCopiedLessOften(t *testing.T) {
	for _, c := range []struct {
		takes, interval time.Duration
		least, most     int // checkpoints in ten seconds
	}{
		{0, 100 * time.Millisecond, 95, 105},
		{time.Millisecond, 100 * time.Millisecond, 95, 105},
		{100 * time.Millisecond, 100 * time.Millisecond, 10, 13}, // one in 900 ms
		{2 * time.Second, 100 * time.Millisecond, 1, 3},
	} {
		for _, freezes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.runner.Interval = c.interval
				runLarge(t, r, slowState{takes: c.takes, freezes: freezes}, 10*time.Second)
				if n := len(r.store.saved); n < c.least || n > c.most {
					t.Errorf("encoding takes %v (of a copy: %v): %d checkpoints in ten seconds, want %d to %d", c.takes,
						freezes, n, c.least, c.most)
				}
			})
		}
	}
}

// TestCheckpointDueDuringASaveIsPutOff: the task takes records meanwhile, and the next checkpoint comes when the save
// is done.
func TestCheckpointDueDuringASaveIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.runner.Interval = 100 * time.Millisecond
		r.store.fail = func(int) error { time.Sleep(time.Second); return nil }
		runLarge(t, r, slowState{}, 5*time.Second)
		taken := r.task.state.sum
		if n := len(r.store.saved); n < 5 || n > 7 {
			t.Errorf("%d checkpoints in five seconds, each of one second, want 5 to 7", n)
		}
		if taken < 490 {
			t.Errorf("%d records taken, one came every %s for five seconds", taken, tick)
		}
	})
}
