package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// TestTakeLogRoundTrip compares the decoded events with a plain list of what a task got, runs joined.
func TestTakeLogRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for seed := range 50 {
		j := &takeLog{base: uint64(seed), idle: uint64(seed % 4)}
		var want []event
		next := [2]int64{r.Int64N(100), r.Int64N(1 << 40)}
		for range r.IntN(60) {
			in := Input(r.IntN(2))
			switch r.IntN(9) {
			case 0:
				j.took(Record{Input: in, Idle: true})
				want = append(want, event{kind: eventIdle, input: in})
			case 1:
				j.closing()
				want = append(want, event{kind: eventClose})
			case 2:
				j.took(Record{Input: in, Paused: true})
				want = append(want, event{kind: eventPause, input: in})
			default:
				next[in] += 1 + r.Int64N(3) // gaps: transaction markers
				ahead := r.IntN(4) == 0
				if ahead {
					want = append(want, event{kind: eventAhead, input: in})
				}
				j.took(Record{Input: in, Offset: next[in] - 1, Ahead: ahead})
				if n := len(want); n > 0 && want[n-1].kind == eventTake && want[n-1].input == in {
					want[n-1].until = next[in]
				} else {
					want = append(want, event{eventTake, in, next[in]})
				}
			}
		}
		data := j.cut(uint64(seed+1), 3)
		got, err := decodeJournal(data)
		if err != nil || got.base != uint64(seed) || got.idle != uint64(seed%4) ||
			!reflect.DeepEqual(got.events, want) {
			t.Fatalf("seed %d: got %+v, %v, want %v", seed, got, err, want)
		}
		if again, err := decodeJournal(j.cut(9, 0)); err != nil || again.base != uint64(seed+1) || again.idle != 3 ||
			len(again.events) != 0 {
			t.Errorf("after a cut: %+v, %v, want an empty one", again, err)
		}
		for i := range data {
			bad := append([]byte{}, data...)
			bad[i] ^= 1 << r.IntN(8)
			if _, err := decodeJournal(bad); !errors.Is(err, ErrCheckpoint) {
				t.Fatalf("seed %d: a flip of byte %d of %d gives %v", seed, i, len(data), err)
			}
			if _, err := decodeJournal(data[:i]); !errors.Is(err, ErrCheckpoint) {
				t.Fatalf("seed %d: %d bytes of %d give %v", seed, i, len(data), err)
			}
		}
	}
}

// TestJournalOfTheVersionBefore is read: it has no pauses, so its codes are inputs times five.
func TestJournalOfTheVersionBefore(t *testing.T) {
	data := []byte("PLBO\x03\x07\x01\x04")
	for _, code := range []uint64{eventTake, 5 + eventTake, 5 + eventIdle, eventAhead} {
		if data = binenc.AppendUvarint(data, code); code%5 == eventTake {
			data = binenc.AppendVarint(data, 9)
		}
	}
	data = binenc.AppendFixed32(data, crc32.Checksum(data, castagnoli))
	want := []event{{eventTake, Logits, 9}, {eventTake, Labels, 9}, {eventIdle, Labels, 0}, {eventAhead, Logits, 0}}
	if got, err := decodeJournal(data); err != nil || got.base != 7 || got.idle != 1 ||
		!slices.Equal(got.events, want) {
		t.Errorf("got %+v, %v, want %v", got, err, want)
	}
}

// shardSource is what a shard reads: notices at their place among records, of which those before next are left out.
type shardSource struct {
	records []Record
	next    int64
}

func (s *shardSource) Next(context.Context) (Record, error) {
	for len(s.records) > 0 {
		r := s.records[0]
		s.records = s.records[1:]
		if r.Idle || r.Paused || r.Offset >= s.next {
			return r, nil
		}
	}
	return Record{}, io.EOF
}

func (*shardSource) Close() error                                  { return nil }
func (*shardSource) Commit(context.Context, map[Input]int64) error { return nil }
func (s *shardSource) CaughtUp() bool                              { return len(s.records) == 0 }

// numbered has the messages of a shard by their number, of which none may be another than it was.
type numbered struct {
	t  *testing.T
	by map[uint64][]byte
}

func (n numbered) Close() error { return nil }

func (n numbered) Write(_ context.Context, ms []Message) error {
	for _, m := range ms {
		if m.Stream != StreamPanes {
			continue
		}
		p, err := DecodePane(m.Value)
		if err != nil {
			return err
		}
		if old := n.by[p.Seq]; old != nil && !bytes.Equal(old, m.Value) {
			n.t.Errorf("number %d is used for two messages", p.Seq)
		}
		n.by[p.Seq] = bytes.Clone(m.Value)
	}
	return nil
}

// TestPauseIsTakenAgain: what a shard says when reading stops for a while takes a number. Without it the next message
// would have that number, and readers would take it for a repeat. A pause while records are read again says nothing.
func TestPauseIsTakenAgain(t *testing.T) {
	row := func(offset, ts int64, rows int) Record {
		c := arrowio.Columns{Model: "m", K: 2}
		for i := range rows {
			c.IDs, c.TS = append(c.IDs, fmt.Sprint(offset, i)), append(c.TS, ts)
			c.Logits = append(c.Logits, 1, 2)
		}
		value, err := arrowio.EncodePredictions(c)
		if err != nil {
			t.Fatal(err)
		}
		return Record{Topic: "z", Offset: offset, Time: ts, Value: value}
	}
	paused, idle := Record{Paused: true}, Record{Idle: true}
	first, second, third, fourth := row(0, 250, 2), row(1, 350, 1), row(2, 650, 1), row(3, 950, 1)
	store, sink := &keptStore{}, numbered{t, map[uint64][]byte{}}
	run := func(records ...Record) {
		t.Helper()
		runner := newRig().runner
		runner.Store, runner.Sink = store, sink
		if err := Run(t.Context(), runner, func() (Registered, error) {
			counts := NewCounts()
			s := NewShard(ShardSpec{Inputs: 1, PaneLength: 100, Watermark: NewWatermark(1, 0), CheckpointRows: 2,
				Decoder: arrowio.NewDecoder(arrowio.Options{}),
				Host: Host{Out: NewOut(counts), Outbox: NewOutbox(0, 1, 100, 1), Counts: counts,
					Log: slog.New(slog.DiscardHandler)}})
			return s.ForRun(), nil
		}, func(next map[Input]int64) (Opened, error) {
			return Opened{Source: &shardSource{records: records, next: next[Logits]}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	run(first, second, idle, paused)
	said := len(sink.by)
	if got := fmt.Sprint(store.numbers()); got != "[2 1]" { // full at the first, and because of the pause
		t.Fatalf("checkpoints %s, want 2 and 1", got)
	}
	store.damage()
	run(second, third)
	if len(sink.by) <= said {
		t.Errorf("%d messages after the third record, %d before it", len(sink.by), said)
	}
	run(idle)
	run(fourth) // takes back that it is idle
	store.damage()
	run(paused, fourth)
}

// stored makes journals by checkpoint number, from the base that each follows; a nil one is absent.
func stored(bases map[uint64]uint64, numbers ...uint64) (out []Stored) {
	for _, n := range numbers {
		base := bases[n]
		data := (&takeLog{base: base}).cut(n, 0)
		out = append(out, Stored{Number: n, Journal: func() ([]byte, error) { return data, nil }})
	}
	return out
}

// TestPastsLeadToTheNewest: a checkpoint that was made after a fallback follows the one that was fallen back to.
func TestPastsLeadToTheNewest(t *testing.T) {
	missing := stored(map[uint64]uint64{8: 7, 7: 6}, 8, 7)
	missing[1].Journal = nil
	broken := stored(map[uint64]uint64{8: 7}, 8)
	broken[0].Journal = func() ([]byte, error) { return nil, io.ErrUnexpectedEOF }
	for name, c := range map[string]struct {
		base     uint64
		unusable []Stored
		want     []uint64 // bases, in order; nil = an error
	}{
		"one":                  {6, stored(map[uint64]uint64{7: 6}, 7), []uint64{6}},
		"two":                  {5, stored(map[uint64]uint64{7: 6, 6: 5}, 7, 6), []uint64{5, 6}},
		"after a fallback":     {5, stored(map[uint64]uint64{7: 5, 6: 5}, 7, 6), []uint64{5}},
		"leads past the base":  {6, stored(map[uint64]uint64{7: 4}, 7), nil},
		"follows itself":       {6, stored(map[uint64]uint64{7: 7}, 7), nil},
		"no journal":           {6, missing, nil},
		"a journal unreadable": {7, broken, nil},
	} {
		ps, err := pasts(c.base, c.unusable)
		var got []uint64
		for _, p := range ps {
			got = append(got, p.base)
		}
		if (err != nil) != (c.want == nil) || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// anyOrder is the order of inputs of a task that has one.
type anyOrder struct{}

func (anyOrder) IdleInputs() uint64   { return 0 }
func (anyOrder) SetIdleInputs(uint64) {}

// runOrdered runs the rig's task as one whose order matters.
func (r *rig) runOrdered(ctx context.Context, src Source) error {
	return Run(ctx, r.runner, func() (Registered, error) {
		task, err := r.build()
		task.Order = anyOrder{}
		return task, err
	}, func(next map[Input]int64) (Opened, error) {
		r.source.next = next[Logits]
		return Opened{Source: src}, nil
	})
}

// keptStore keeps the two newest usable checkpoints, and their journals.
type keptStore struct{ kept []keptCheckpoint } // newest first

type keptCheckpoint struct {
	number uint64
	Checkpoint
}

func (s *keptStore) Lost(string) bool                            { return false }
func (s *keptStore) Holds(context.Context, string, uint64) error { return nil }

func (s *keptStore) Save(_ context.Context, _ string, number uint64, c Checkpoint) error {
	if err := c.Prepared(); err != nil {
		return err
	}
	c.Data = bytes.Clone(c.Data)
	s.kept = slices.Insert(s.kept, 0, keptCheckpoint{number, c})
	s.kept = s.kept[:c.Kept(s.numbers(), 2)]
	return nil
}

func (s *keptStore) Load(context.Context, string) (out []Stored, err error) {
	for _, c := range s.kept {
		out = append(out, Stored{Number: c.number, Read: func() ([]byte, error) { return c.Data, nil },
			Journal: func() ([]byte, error) { return c.Journal, nil }})
	}
	return out, nil
}

func (s *keptStore) numbers() (out []uint64) {
	for _, c := range s.kept {
		out = append(out, c.number)
	}
	return out
}

// damage cuts the newest checkpoint off; its journal stays whole.
func (s *keptStore) damage() { s.kept[0].Data = s.kept[0].Data[:10] }

// endingSource ends its reader where it has nothing.
type endingSource struct {
	*listSource
	stop func()
}

func (s *endingSource) Next(ctx context.Context) (Record, error) {
	if s.CaughtUp() {
		s.stop()
	}
	return s.listSource.Next(ctx)
}

// TestNoCheckpointBeforeAllIsTakenAgain: a checkpoint on the way would not have what comes after it, which was shown.
func TestNoCheckpointBeforeAllIsTakenAgain(t *testing.T) {
	r := newRig(1, 2, 3, 4, 5, 6, 7)
	store := &keptStore{}
	r.runner.Store = store
	if err := r.runOrdered(t.Context(), r.source); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(store.numbers()), "[3 2]"; got != want { // full at 3, 6, and the end
		t.Fatalf("checkpoints %v, want %v", got, want)
	}
	store.damage()
	panes := len(r.sink.panes)
	r.source.values, r.source.wait = r.source.values[:6], true // the record that was taken is not there yet
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.runOrdered(ctx, &endingSource{r.source, cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped on the way: %v", err)
	}
	if got := store.numbers(); len(got) != 2 {
		t.Errorf("checkpoints %v: one was written on the way", got)
	}
	r.source.values, r.source.wait = append(r.source.values, 7, 8), false
	if err := r.runOrdered(t.Context(), r.source); err != nil {
		t.Fatal(err)
	}
	// What checkpoint 2 held is written again by both, then what 3 had, and the new one.
	if got, want := fmt.Sprint(r.sink.panes[panes:]), "[10 15 21 10 15 21 28 36]"; got != want {
		t.Errorf("panes %v, want %v", got, want)
	}
	if got, want := fmt.Sprint(store.numbers()), "[4 3 2]"; got != want {
		t.Errorf("checkpoints %v, want %v", got, want)
	}
}

// aheadSource marks records, as a source does whose clock is behind them.
type aheadSource struct {
	*listSource
	ahead []int64
}

func (s *aheadSource) Next(ctx context.Context) (Record, error) {
	r, err := s.listSource.Next(ctx)
	r.Ahead = slices.Contains(s.ahead, r.Offset)
	return r, err
}

// reusing hands out records in memory that it uses again at the call after the next, as Source allows.
type reusing struct {
	Source
	records []Record
	out     [][]byte
}

func (s *reusing) Next(context.Context) (Record, error) {
	if n := len(s.out); n > 1 {
		clear(s.out[n-2])
	}
	if len(s.records) == 0 {
		return Record{}, io.EOF
	}
	r := s.records[0].clone()
	s.records, s.out = s.records[1:], append(s.out, r.Value)
	return r, nil
}

// TestGapBeforeHeldRecord: the last records of a run may have left the log since, as from a compacted topic. The one
// that comes instead waits for its turn while others are read, in memory of its own.
func TestGapBeforeHeldRecord(t *testing.T) {
	src := &rereader{Source: &reusing{records: []Record{{Offset: 5, Value: []byte("five")},
		{Input: Labels, Offset: 0, Value: []byte("a")}, {Input: Labels, Offset: 1, Value: []byte("b")},
		{Input: Labels, Offset: 2, Value: []byte("c")}}}}
	l := &loop{task: Registered{Task: &adder{}}}
	if err := l.again(t.Context(), src, event{kind: eventTake, until: 4}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := src.of(t.Context(), Labels); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := src.Next(t.Context()); err != nil || r.Offset != 5 || string(r.Value) != "five" {
		t.Errorf("offset %d, value %q, error %v", r.Offset, r.Value, err)
	}
}

// TestRecordsAheadAreRefusedAgain: what was refused because it was ahead of the clock is refused when it is taken
// again, when the clock has passed it; what is read for the first time then is not.
func TestRecordsAheadAreRefusedAgain(t *testing.T) {
	r := newRig(1, 2, 3, 4, 5, 6)
	store := &keptStore{}
	r.runner.Store = store
	if err := r.runOrdered(t.Context(), &aheadSource{r.source, []int64{0, 3, 4}}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.sink.panes), "[0 2 5 5 5 11]"; got != want {
		t.Fatalf("panes %v, want %v", got, want)
	}
	store.damage()
	r.source.values = append(r.source.values, 7)
	if err := r.runOrdered(t.Context(), r.source); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.sink.panes[6:]), "[0 2 5 5 5 11 18]"; got != want {
		t.Errorf("panes of the second run %v, want %v", got, want)
	}
}

// TestStoppedRestoreBlamesNoCheckpoint: reading one that is cut off by the end of the task says nothing about it.
func TestStoppedRestoreBlamesNoCheckpoint(t *testing.T) {
	r := newRig(1, 2, 3)
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.runner.Store = &cutStore{r.store, cancel}
	if err := r.run(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnusable) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// cutStore ends the task while a checkpoint is read.
type cutStore struct {
	*failStore
	cancel func()
}

func (s *cutStore) Load(context.Context, string) ([]Stored, error) {
	return []Stored{{Name: "cut off", Number: 1, Read: func() ([]byte, error) {
		s.cancel()
		return nil,
			context.Canceled
	}}}, nil
}

// TestDamageTwice: a checkpoint that could not be used is not one of those that are kept, so after the next one there
// is still a second to fall back to.
func TestDamageTwice(t *testing.T) {
	r := newRig(1, 2, 3, 4, 5, 6, 7)
	store := &keptStore{}
	r.runner.Store = store
	run := func() {
		t.Helper()
		if err := r.runOrdered(t.Context(), r.source); err != nil {
			t.Fatal(err)
		}
	}
	run() // checkpoints 1, 2, 3
	for range 4 {
		store.damage()
		r.source.values = append(r.source.values, 1)
		run() // from 2, again and again: it saves one more
	}
	if got, want := fmt.Sprint(store.numbers()), "[7 6 5 4 3 2]"; got != want {
		t.Errorf("kept %s, want %s: all down to the second that can be used", got, want)
	}
	r.source.values = append(r.source.values, 1)
	run()
	if got := fmt.Sprint(store.numbers()); got != "[8 7]" {
		t.Errorf("kept %s, want 8 and 7", got)
	}
	sum := 0
	for _, v := range r.source.values {
		sum += int(v)
	}
	if got := int(r.sink.panes[len(r.sink.panes)-1]); got != sum {
		t.Errorf("the last pane is %d, want %d", got, sum)
	}
}
