package pipeline

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gateStore lets each Save through when the gate opens.
type gateStore struct {
	*failStore
	gate chan struct{}
	cut  bool // a Save was cut off; those after it need no gate
}

func (s *gateStore) Save(ctx context.Context, key string, number uint64, c Checkpoint) error {
	if s.cut {
		return s.failStore.Save(ctx, key, number, c)
	}
	select {
	case <-s.gate:
		return s.failStore.Save(ctx, key, number, c)
	case <-ctx.Done():
		s.cut = true
		return ctx.Err()
	}
}

// TestWhoLostTheTaskWritesNothing: outputs that may come twice must not come from a process that was away, after newer
// ones.
func TestWhoLostTheTaskWritesNothing(t *testing.T) {
	r := newRig(1, 2, 3)
	r.store.taken = true
	if err := r.run(context.Background()); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	if len(r.events) > 0 {
		t.Errorf("events %v, want none", r.events)
	}
}

// TestTaskGoesOnDuringACheckpoint: records are taken while a checkpoint is written, up to the next one, which waits;
// nothing fenced is seen before its checkpoint, and each checkpoint is of the moment at which it began.
func TestTaskGoesOnDuringACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 2, 3, 4, 5, 6, 7, 8)
		store := &gateStore{failStore: r.store, gate: make(chan struct{})}
		r.runner.Store = store
		done := make(chan error)
		go func() { done <- r.run(context.Background()) }()
		for i, want := range []struct {
			taken int64
			panes []int64
		}{{6, nil}, {8, []int64{1, 3, 6}}, {8, []int64{1, 3, 6, 10, 15, 21}}} { // full at three
			synctest.Wait()
			if r.source.next != want.taken || !slices.Equal(r.sink.panes, want.panes) {
				t.Errorf("%d checkpoints: %d records taken, panes %v, want %d, %v", i, r.source.next, r.sink.panes,
					want.taken, want.panes)
			}
			store.gate <- struct{}{}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		const each = "write deadletter, save, write panes, commit"
		if got := strings.Join(r.events, ", "); got != strings.Join([]string{each, each, each}, ", ") {
			t.Errorf("events %s", got)
		}
		for i, want := range []int64{6, 21, 36} {
			st := &adderState{}
			if err := RestoreCheckpoint(r.store.saved[i], []Section{{Name: "sum", State: st}}, nil); err != nil ||
				st.sum != want || st.next != []int64{3, 6, 8}[i] {
				t.Errorf("checkpoint %d: %+v, %v, want the sum %d", i+1, st, err, want)
			}
		}
	})
}

// TestFailedCheckpointEndsTheWait: a task that waits for a record hears of a checkpoint that failed.
func TestFailedCheckpointEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 2, 3)
		r.source.wait = true
		r.store.fail = func(int) error { time.Sleep(time.Second); return ErrFenced }
		start := time.Now()
		if err := r.run(context.Background()); !errors.Is(err, ErrFenced) {
			t.Errorf("got %v, want the store's error", err)
		}
		if took := time.Since(start); took != time.Second || len(r.sink.panes) > 0 || r.task.closed {
			t.Errorf("it took %v, panes %v, closed %v; want a second, and nothing seen", took, r.sink.panes,
				r.task.closed)
		}
	})
}

// TestStopWaitsForTheCheckpointInFlight, but not for ever; and what was cut off is followed by no checkpoint, which
// would not have its outputs.
func TestStopWaitsForTheCheckpointInFlight(t *testing.T) {
	for _, opens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(1, 2, 3, 4, 5, 6, 7)
			r.source.wait = true
			store := &gateStore{failStore: r.store, gate: make(chan struct{})}
			r.runner.Store = store
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- r.run(ctx) }()
			synctest.Wait()
			cancel()
			start := time.Now()
			if opens {
				time.Sleep(time.Second)
				close(store.gate)
			}
			err := <-done
			switch took := time.Since(start); {
			case opens && (err != nil || took != time.Second || !slices.Equal(r.sink.panes,
				[]int64{1, 3, 6, 10, 15, 21})):
				t.Errorf("%v after %v, panes %v; want those of what was taken", err, took, r.sink.panes)
			case !opens && (!errors.Is(err, context.Canceled) || took != lastTime ||
				len(r.sink.panes)+len(r.store.saved) > 0):
				t.Errorf("%v after %v, panes %v, %d checkpoints; want an end after %v", err, took, r.sink.panes,
					len(r.store.saved), lastTime)
			}
		})
	}
}

// TestStatusIsOfTheCheckpoint: what the status shows is durable.
func TestStatusIsOfTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 2, 3)
		store := &gateStore{failStore: r.store, gate: make(chan struct{})}
		r.runner.Store = store
		done := make(chan error)
		go func() { done <- r.run(context.Background()) }()
		synctest.Wait()
		if len(r.task.reports) != 0 {
			t.Error("a status was shown before its checkpoint")
		}
		close(store.gate)
		if err := <-done; err != nil || len(r.task.reports) == 0 {
			t.Errorf("%v, %d statuses", err, len(r.task.reports))
		}
	})
}

// seenSource records what it is reported to be visible.
type seenSource struct {
	*listSource
	out   uint64
	shown []uint64
}

func (s *seenSource) Next(ctx context.Context) (Record, error) {
	r, err := s.listSource.Next(ctx)
	if err == nil {
		s.out++
	}
	return r, err
}

func (s *seenSource) HandedOut() uint64 { return s.out }
func (s *seenSource) Shown(n uint64)    { s.shown = append(s.shown, n) }

// TestSourceIsToldWhatIsShown: with the status of a checkpoint, not before, and of what was taken when it began.
func TestSourceIsToldWhatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 2, 3, 4)
		store := &gateStore{failStore: r.store, gate: make(chan struct{})}
		r.runner.Store = store
		src := &seenSource{listSource: r.source}
		done := make(chan error)
		go func() {
			done <- Run(context.Background(), r.runner, r.build, func(map[Input]int64) (Opened,
				error) {
				return Opened{src, src}, nil
			})
		}()
		synctest.Wait()
		if !slices.Equal(src.shown, []uint64{0}) || src.out != 4 {
			t.Errorf("reported %v of %d before the first checkpoint was saved", src.shown, src.out)
		}
		close(store.gate)
		if err := <-done; err != nil || !slices.Equal(src.shown, []uint64{0, 3, 4}) || len(r.task.reports) != 2 {
			t.Errorf("%v, reported %v, %d statuses", err, src.shown, len(r.task.reports))
		}
	})
}

// pendingWork is work beside a task that never ends. It counts the goroutines of the process at the latest looks: the
// least of them, as what other tests have left, timers say, comes and goes.
type pendingWork struct {
	wake   chan struct{}
	latest [100]int
	looks  int
}

func (w *pendingWork) Resume() error {
	synctest.Wait() // what was told to end has ended, however few processors there are
	w.latest[w.looks%len(w.latest)] = runtime.NumGoroutine()
	w.looks++
	return nil
}
func (w *pendingWork) Wake() <-chan struct{}        { return w.wake }
func (w *pendingWork) Settle(context.Context) error { return nil }

// slowly hands out a record a millisecond.
type slowly struct{ Source }

func (s slowly) Next(ctx context.Context) (Record, error) {
	time.Sleep(time.Millisecond)
	return s.Source.Next(ctx)
}

// TestWaitsEndWithTheirRecord: what waits for news beside a record does not outlive the record, though the work beside
// the task takes many records' time.
func TestWaitsEndWithTheirRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(make([]int64, 5000)...)
		work := &pendingWork{wake: make(chan struct{})}
		before := runtime.NumGoroutine()
		err := Run(t.Context(), r.runner, func() (Registered, error) {
			task, err := r.build()
			task.Waiter = work
			task.Prompt = func() []Message { r.task.before = nil; return nil } // never full: one wait for all records
			return task, err
		}, func(map[Input]int64) (Opened, error) { return Opened{Source: slowly{r.source}}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if now := slices.Min(work.latest[:]); now > before+4 || work.looks < len(r.source.values) {
			t.Errorf("%d goroutines, %d before, after %d looks at %d records", now, before, work.looks,
				len(r.source.values))
		}
	})
}
