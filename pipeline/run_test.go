package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/faultlog"
)

// adder is a task that sums record values: Before has every value as it came, After the running sum, fenced off.
type adder struct {
	state   adderState
	before  []Message
	dirty   bool
	closed  bool
	reports []bool // caughtUp of every Report
}

type adderState struct {
	next, sum int64
	pending   []int64
	frozen    error // what encoding a copy gives
	refused   int64 // a sum that is of other settings; 0 = none
}

// Freeze implements Freezer.
func (s *adderState) Freeze() func(dst []byte) ([]byte, error) {
	c := *s
	c.pending = slices.Clone(s.pending)
	return func(dst []byte) ([]byte, error) {
		if c.frozen != nil {
			return dst, c.frozen
		}
		return c.AppendState(dst)
	}
}

func (s *adderState) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, s.next), s.sum)
	dst = binenc.AppendUvarint(dst, uint64(len(s.pending)))
	for _, v := range s.pending {
		dst = binenc.AppendVarint(dst, v)
	}
	return dst, nil
}

func (s *adderState) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	*s = adderState{next: r.Varint(), sum: r.Varint(), refused: s.refused}
	if s.refused != 0 && s.sum == s.refused {
		return ErrSettings
	}
	for range r.Count(1, 100) {
		s.pending = append(s.pending, r.Varint())
	}
	return r.Close()
}

func number(v int64) []byte { return binenc.AppendVarint(nil, v) }

func (a *adder) Name() string          { return "adder" }
func (a *adder) Next() map[Input]int64 { return map[Input]int64{Logits: a.state.next} }
func (a *adder) Sections() []Section   { return []Section{{Name: "sum", State: &a.state}} }
func (a *adder) Written()              { a.before, a.state.pending, a.dirty = nil, nil, false }

func (a *adder) Decided() Outputs {
	out := Outputs{Before: a.before, Dirty: a.dirty, Full: len(a.before) >= 3}
	for _, v := range a.state.pending {
		out.After = append(out.After, Message{Stream: StreamPanes, Value: number(v)})
	}
	return out
}

func (a *adder) registered() Registered {
	return Registered{Task: a, Closing: func() { a.closed = true }, Report: func(caughtUp, _ bool) func() {
		return func() { a.reports = append(a.reports, caughtUp) }
	}}
}

func (a *adder) Take(_ context.Context, r Record) error {
	if len(r.Value) == 0 {
		return errors.New("empty record")
	}
	in := binenc.NewReader(r.Value)
	if v := in.Varint(); !r.Ahead { // as a shard, which takes no row of one
		a.state.sum += v
	}
	a.state.next = r.Offset + 1
	a.state.pending = append(a.state.pending, a.state.sum)
	a.before = append(a.before, Message{Stream: StreamDeadLetter, Value: r.Value})
	a.dirty = true
	return nil
}

// journal is everything that the fakes see, in order.
type journal struct{ events []string }

// failStore fails Save where fail says so; a torn save leaves damaged bytes that claim to be the newest.
type failStore struct {
	*journal
	saved [][]byte
	fail  func(n int) error
	n     int
	taken bool // another process goes on with the task
	lost  bool // what was saved is gone
}

func (s *failStore) Lost(string) bool { return s.lost }

func (s *failStore) Holds(context.Context, string, uint64) error {
	if s.taken {
		return ErrFenced
	}
	return nil
}

func (s *failStore) Save(_ context.Context, _ string, _ uint64, c Checkpoint) error {
	s.n++
	if s.fail != nil {
		if err := s.fail(s.n); err != nil {
			s.events = append(s.events, "save failed")
			return err
		}
	}
	if err := c.Prepared(); err != nil {
		return err
	}
	s.saved = append(s.saved, bytes.Clone(c.Data))
	s.events = append(s.events, "save")
	return nil
}

func (s *failStore) Load(context.Context, string) ([]Stored, error) {
	var out []Stored
	for _, b := range slices.Backward(s.saved) {
		out = append(out, Stored{Name: "saved", Read: func() ([]byte, error) { return b, nil }})
	}
	return out, nil
}

type failSink struct {
	*journal
	fail  func(ms []Message) error
	panes []int64
}

func (s *failSink) Write(_ context.Context, ms []Message) error {
	if len(ms) == 0 {
		return nil
	}
	if s.fail != nil {
		if err := s.fail(ms); err != nil {
			s.events = append(s.events, "write failed")
			return err
		}
	}
	s.events = append(s.events, "write "+string(ms[0].Stream))
	for _, m := range ms {
		if m.Stream == StreamPanes {
			r := binenc.NewReader(m.Value)
			s.panes = append(s.panes, r.Varint())
		}
	}
	return nil
}

func (s *failSink) Close() error { return nil }

// listSource yields a list of values as records, from an offset, and then ends or waits.
type listSource struct {
	*journal
	values    []int64
	next      int64
	wait      bool
	committed int64
}

func (s *listSource) Next(ctx context.Context) (Record, error) {
	if s.next < int64(len(s.values)) {
		s.next++
		return Record{Offset: s.next - 1, Value: number(s.values[s.next-1])}, nil
	}
	if s.wait {
		<-ctx.Done()
		return Record{}, ctx.Err()
	}
	return Record{}, io.EOF
}

func (s *listSource) Commit(_ context.Context, next map[Input]int64) error {
	s.committed = next[Logits]
	s.events = append(s.events, "commit")
	return nil
}
func (s *listSource) CaughtUp() bool { return s.next >= int64(len(s.values)) }
func (s *listSource) Close() error   { return nil }

type rig struct {
	*journal
	store  *failStore
	sink   *failSink
	source *listSource
	task   *adder
	runner Runner
}

func newRig(values ...int64) *rig {
	j := &journal{}
	r := &rig{journal: j, store: &failStore{journal: j}, sink: &failSink{journal: j},
		source: &listSource{journal: j, values: values}}
	r.runner = Runner{Group: "g", Store: r.store, Sink: r.sink, Interval: time.Hour,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return r
}

func (r *rig) run(ctx context.Context) error {
	return r.runFrom(ctx, r.source)
}

// build makes the task anew.
func (r *rig) build() (Registered, error) {
	r.task = &adder{}
	return r.task.registered(), nil
}

// runFrom runs the task on a source that is made of the rig's.
func (r *rig) runFrom(ctx context.Context, src Source) error {
	return Run(ctx, r.runner, r.build, func(next map[Input]int64) (Opened, error) {
		r.source.next = next[Logits]
		return Opened{Source: src}, nil
	})
}

var errTest = errors.New("test failure")

func TestRunOrder(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := "write deadletter, save, write panes, commit, write deadletter, save, write panes, commit"
	if got := strings.Join(r.events, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(r.sink.panes, []int64{1, 3, 6, 10}) || r.source.committed != 4 {
		t.Errorf("panes %v, committed %d", r.sink.panes, r.source.committed)
	}
}

// unheard is a source whose offsets cannot be committed.
type unheard struct{ *listSource }

func (unheard) Commit(context.Context, map[Input]int64) error { return errTest }

// TestOffsetsThatCannotBeCommitted: they end nothing, and do not fill the log.
func TestOffsetsThatCannotBeCommitted(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	var log strings.Builder
	r.runner.Log = slog.New(faultlog.New(slog.NewTextHandler(&log, nil)))
	if err := r.runFrom(context.Background(), unheard{r.source}); err != nil {
		t.Fatal(err)
	}
	if saves := len(r.store.saved); saves != 2 || strings.Count(log.String(), "commit offsets") != 1 {
		t.Errorf("%d checkpoints, want 2 and one line:\n%s", saves, log.String())
	}
}

func TestNothingNewNeedsNoCheckpoint(t *testing.T) {
	r := newRig()
	if err := r.run(context.Background()); err != nil || len(r.events) != 0 || len(r.task.reports) != 1 ||
		!r.task.reports[0] {
		t.Errorf("events %v, reports %v, %v; want a report of having caught up only", r.events, r.task.reports, err)
	}
}

// TestPanesShowOnlyAfterTheCheckpoint: where the save fails, nothing fenced may be seen, and the restart goes on from
// the checkpoint before.
func TestPanesShowOnlyAfterTheCheckpoint(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	r.store.fail = func(n int) error {
		if n == 2 {
			return errTest
		}
		return nil
	}
	if err := r.run(context.Background()); !errors.Is(err, errTest) {
		t.Fatalf("run: %v, want the store's error", err)
	}
	if !slices.Equal(r.sink.panes, []int64{1, 3, 6}) {
		t.Errorf("panes %v were shown, want those of the first checkpoint", r.sink.panes)
	}
	r.sink.panes = nil
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []int64{1, 3, 6, 10}; !slices.Equal(r.sink.panes, want) {
		t.Errorf("after the restart panes %v, want the outbox again and the rest %v", r.sink.panes, want)
	}
}

// TestOutboxIsWrittenAgain: a crash between the checkpoint and the panes loses none of them.
func TestOutboxIsWrittenAgain(t *testing.T) {
	r := newRig(5, 6)
	r.sink.fail = func(ms []Message) error {
		if ms[0].Stream == StreamPanes {
			return errTest
		}
		return nil
	}
	if err := r.run(context.Background()); !errors.Is(err, errTest) {
		t.Fatalf("run: %v, want the sink's error", err)
	}
	if len(r.store.saved) != 1 || len(r.sink.panes) != 0 {
		t.Fatalf("%d checkpoints, panes %v", len(r.store.saved), r.sink.panes)
	}
	if err := r.run(context.Background()); !errors.Is(err, errTest) {
		t.Errorf("restart with a sink that still fails: %v", err)
	}
	r.sink.fail = nil
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.sink.panes, []int64{5, 11}) || r.task.state.sum != 11 {
		t.Errorf("panes %v, sum %d, want [5 11], 11", r.sink.panes, r.task.state.sum)
	}
}

func TestFailedOutputsKeepTheCheckpointBack(t *testing.T) {
	r := newRig(5)
	r.sink.fail = func([]Message) error { return errTest }
	if err := r.run(context.Background()); !errors.Is(err, errTest) || len(r.store.saved) != 0 {
		t.Errorf("%d checkpoints, %v; want none before the outputs are written", len(r.store.saved), err)
	}
}

func TestRecordThatFailsLeavesNoTrace(t *testing.T) {
	r := newRig(1, 2)
	r.runner.Sink = r.sink
	err := r.runFrom(context.Background(), badSource{r.source})
	if err == nil || !strings.Contains(err.Error(), "empty record") || len(r.events) != 0 {
		t.Errorf("%v, events %v; want the task's error and no checkpoint", err, r.events)
	}
}

type badSource struct{ *listSource }

func (s badSource) Next(ctx context.Context) (Record, error) {
	r, err := s.listSource.Next(ctx)
	if errors.Is(err, io.EOF) {
		return Record{Offset: 2}, nil
	}
	return r, err
}

func TestDamagedNewestFallsBack(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	newest := r.store.saved[len(r.store.saved)-1]
	newest[len(newest)/2] ^= 1
	r.sink.panes = nil
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []int64{1, 3, 6, 10}; !slices.Equal(r.sink.panes, want) || r.task.state.sum != 10 {
		t.Errorf("panes %v, sum %d; want %v from the checkpoint before", r.sink.panes, r.task.state.sum, want)
	}
	for _, b := range r.store.saved {
		b[len(b)-1] ^= 1
	}
	r.events = nil
	err := r.run(context.Background())
	if !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), "no checkpoint can be used") ||
		len(r.events) != 0 {
		t.Errorf("all damaged: %v, events %v; want a clear error and nothing done", err, r.events)
	}
}

// TestOtherSettingsDoNotFallBack: where the newest checkpoint is of other settings, one of before is none to go on
// from, even if it could be used.
func TestOtherSettingsDoNotFallBack(t *testing.T) {
	r := newRig(1, 2, 3, 4)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.events = nil
	r.runner.Anew = "another directory"
	build := func() (Registered, error) {
		r.task = &adder{state: adderState{refused: 10}}
		return r.task.registered(), nil
	}
	err := Run(context.Background(), r.runner, build, func(map[Input]int64) (Opened, error) {
		return Opened{Source: r.source}, nil
	})
	if !errors.Is(err, ErrSettings) || !errors.Is(err, ErrUnusable) || len(r.events) != 0 ||
		!strings.HasSuffix(err.Error(), "(or begin anew with another directory)") {
		t.Errorf("%v, events %v; want a clear error and nothing done", err, r.events)
	}
}

// cramped is an adder that needs room on the disk, as a join does.
type cramped struct{ *adder }

func (c cramped) Sections() []Section { return []Section{{Name: "sum", State: noRoom{}}} }

type noRoom struct{}

func (noRoom) AppendState(dst []byte) ([]byte, error) { return dst, nil }
func (noRoom) RestoreState([]byte) error {
	return fmt.Errorf("work directory: %w", &fs.PathError{Op: "open", Path: "lock", Err: syscall.EROFS})
}

// TestFullDiskIsNoDamage: where the machine lets nobody write, checkpoints are not called unusable, no older one is
// taken, and nobody is told to give the state up.
func TestFullDiskIsNoDamage(t *testing.T) {
	r := newRig(1, 2)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	built := 0
	build := func() (Registered, error) { built++; return Registered{Task: cramped{&adder{}}}, nil }
	err := Run(context.Background(), r.runner, build, func(map[Input]int64) (Opened, error) {
		return Opened{Source: r.source}, nil
	})
	if !errors.Is(err, syscall.EROFS) || errors.Is(err, ErrUnusable) || built != 1 ||
		strings.Contains(err.Error(), "state reset") {
		t.Errorf("%v after %d tries", err, built)
	}
}

// TestForbiddenFileSaysWhatToDo: a checkpoint that this user may not read is no reason to take an older one, or to give
// the state up: the error names it and the right that is missing.
func TestForbiddenFileSaysWhatToDo(t *testing.T) {
	r := newRig(1, 2)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	build := func() (Registered, error) { return Registered{Task: forbidden{&adder{}}}, nil }
	err := Run(context.Background(), r.runner, build, func(map[Input]int64) (Opened, error) {
		return Opened{Source: r.source}, nil
	})
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnusable) ||
		!strings.HasSuffix(err.Error(), "open /s/7: permission denied (let this user read and write it)") {
		t.Error(err)
	}
}

type forbidden struct{ *adder }

func (f forbidden) Sections() []Section { return []Section{{Name: "sum", State: noRight{}}} }

type noRight struct{ noRoom }

func (noRight) RestoreState([]byte) error {
	return &fs.PathError{Op: "open", Path: "/s/7", Err: syscall.EACCES}
}

// otherFormat is an adder whose state has another format.
type otherFormat struct{ *adder }

func (o otherFormat) Sections() []Section {
	return []Section{{Name: "sum", Version: 9, State: &o.state}}
}

// TestOtherFormatNamesTheWayBack: before giving a state up, a person is told of the build that can use it.
func TestOtherFormatNamesTheWayBack(t *testing.T) {
	r := newRig(1, 2)
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	build := func() (Registered, error) { return Registered{Task: otherFormat{&adder{}}}, nil }
	err := Run(context.Background(), r.runner, build, func(map[Input]int64) (Opened, error) {
		return Opened{Source: r.source}, nil
	})
	var format *FormatError
	const first = "(start the build that wrote it again, which loses nothing; if nothing else helps, "
	if !errors.As(err, &format) || *format != (FormatError{"sum", 0, 9}) || !strings.Contains(err.Error(), first) {
		t.Errorf("got %v", err)
	}
}

// TestStopSavesOnceMore: a run that is to stop makes what it took durable, within a time of its own.
func TestStopSavesOnceMore(t *testing.T) {
	r := newRig(1, 2)
	r.source.wait = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.run(ctx) }()
	time.AfterFunc(30*time.Millisecond, cancel)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := "write deadletter, save, write panes, commit"; strings.Join(r.events, ", ") != want || !r.task.closed {
		t.Errorf("got %v, want %s", r.events, want)
	}
}

// TestCopyThatDoesNotEncode: a copy is encoded while the task goes on; an error of it ends the task, and nothing of
// that checkpoint is seen.
func TestCopyThatDoesNotEncode(t *testing.T) {
	r := newRig(1, 2, 3, 4, 5)
	err := Run(t.Context(), r.runner, func() (Registered, error) {
		r.task = &adder{state: adderState{frozen: errTest}}
		return r.task.registered(), nil
	}, func(map[Input]int64) (Opened, error) { return Opened{Source: r.source}, nil })
	if !errors.Is(err, errTest) || !strings.Contains(err.Error(), "adder: encode state of sum") || len(r.events) > 0 {
		t.Errorf("got %v after %v, want an error that names task and section, and nothing before", err, r.events)
	}
}

func TestIntervalSaves(t *testing.T) {
	r := newRig(1)
	r.source.wait = true
	r.runner.Interval = 5 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.sink.fail = func(ms []Message) error {
		if ms[0].Stream == StreamPanes {
			cancel()
		}
		return nil
	}
	if err := r.run(ctx); err != nil || !slices.Equal(r.sink.panes, []int64{1}) {
		t.Errorf("panes %v, %v; want one, saved by time while the source waits", r.sink.panes, err)
	}
	if ctx.Err() != context.Canceled {
		t.Error("saved only when the test gave up")
	}
}
