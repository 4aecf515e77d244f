package pipeline

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestEpochTells: a loss is told once, when its end is known, and a restored shard neither forgets nor repeats it.
func TestEpochTells(t *testing.T) {
	l := &Epoch{}
	l.Begin(7, &record.Loss{Schema: 1, Task: "shards/2", Since: record.At(10), From: map[string]int64{"in": 4}})
	restored := func() *Epoch {
		t.Helper()
		b, err := l.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		back := &Epoch{}
		if err := back.RestoreState(b); err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("restored %+v, %v; want %+v", back, err, l)
		}
		return back
	}
	if got := l.tell(); got != nil {
		t.Errorf("told before its end was known: %+v", got)
	}
	l = restored()
	l.reached(100, 5)
	l.reached(200, 5)
	l = restored()
	if got := l.tell(); got == nil || got.Until != record.At(105) || got.Since != record.At(10) {
		t.Errorf("told %+v, want it until 105", got)
	}
	if got := restored().tell(); got != nil {
		t.Errorf("told twice: %+v", got)
	}
}

// TestEpochAdds: a shard tells of the loss of another task at once, and together with one that it has not told yet.
func TestEpochAdds(t *testing.T) {
	loss := func(task string, since, until Time) *record.Loss {
		return &record.Loss{Schema: 1, Task: task, Since: record.At(since), Until: record.At(until), Why: "w",
			From: map[string]int64{task: 4}, Skipped: map[string]int64{task: 2}}
	}
	l := &Epoch{ID: 3}
	l.Add(loss("a", 20, 50))
	l.Add(loss("b", 10, 40))
	both := map[string]int64{"a": 4, "b": 4}
	got := l.tell()
	if got == nil || got.Task != "a, b" || !reflect.DeepEqual(got.From, both) || len(got.Skipped) != 2 ||
		got.Since != record.At(10) || got.Until != record.At(50) || got.Why != "w" {
		t.Errorf("told %+v, want both from 10 to 50", got)
	}
	l.Add(loss("c", 60, 70))
	if got := l.tell(); got == nil || got.Task != "c" || l.ID != 3 {
		t.Errorf("told %+v, want c alone", got)
	}
}

// TestAmend changes one section of a checkpoint, adds one, and leaves the others as they are.
func TestAmend(t *testing.T) {
	next := []int64{5, 6}
	c, err := Begun(next, &Epoch{ID: 3})
	if err != nil {
		t.Fatal(err)
	}
	amended, err := Amend(Stored{Read: func() ([]byte, error) { return c.Data, nil }}, map[string]Edit{
		"offsets": MoveOffsets(func(at []int64) { at[1] = 60 }),
		"more":    func([]byte) ([]byte, error) { return []byte{1}, nil },
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	info, err := InspectCheckpoint(amended.Data)
	if err != nil {
		t.Fatal(err)
	}
	if info.Offsets["logits"] != 5 || info.Offsets["labels"] != 60 || len(info.Sections) != 3 {
		t.Errorf("amended to %+v", info)
	}
	var at offsets = make([]int64, 2)
	l := &Epoch{}
	if err := RestoreCheckpoint(amended.Data, []Section{offsetsSection(&at), l.CheckpointSection()}, nil); err != nil ||
		l.ID != 3 || at[1] != 60 {
		t.Errorf("restored %v, %+v, %v", at, l, err)
	}
}

// TestEpochAgain: epochs that a person has ordered have a name; the first one and a replay's have none.
func TestEpochAgain(t *testing.T) {
	for epoch, want := range map[uint64]string{0: "", NewEpoch(): ""} {
		if got := (&Epoch{ID: epoch}).Again(); got != want {
			t.Errorf("epoch %d: %q", epoch, got)
		}
	}
	l, names := &Epoch{}, map[string]bool{}
	for range 100 {
		l.Begin(NewEpoch(), &record.Loss{})
		names[l.Again()] = true
	}
	if len(names) != 100 || names[""] {
		t.Errorf("%d names of 100 lives", len(names))
	}
	l.Move(&record.Loss{}) // the state is what it was: so are its files
	if !names[l.Again()] {
		t.Error("another name where the state was kept")
	}
}

// TestBranching: a restored shard numbers anew in another epoch; what waits to be written keeps its epoch and number.
func TestBranching(t *testing.T) {
	o := NewOutbox(2, 3, 10, 2)
	o.epoch.Begin(NewEpoch(), nil)
	was := o.epoch.ID
	o.Punctuate(Punctuation{Closed: 5})
	o.Clear()
	o.Punctuate(Punctuation{Closed: 6})
	sections := []Section{o.epoch.CheckpointSection(), {Name: "outbox", Version: 1, State: o}}
	c, err := EncodeCheckpoint(sections)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := NumberedBy(c.Data); err != nil || !reflect.DeepEqual(n, Numbered{was, []uint64{2, 2}}) {
		t.Errorf("numbered %+v, %v", n, err)
	}
	amended, err := Amend(Stored{Read: func() ([]byte, error) { return c.Data, nil }}, Branching(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := RestoreCheckpoint(amended.Data, sections, nil); err != nil {
		t.Fatal(err)
	}
	if o.epoch.ID == was || o.epoch.Again() != "" {
		t.Errorf("epoch %d, was %d", o.epoch.ID, was)
	}
	o.Punctuate(Punctuation{Closed: 7})
	var got []string
	for _, m := range o.Pending() {
		p, err := DecodePane(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(m.Partition, p.Epoch == was, p.Seq))
	}
	if want := []string{"0 true 2", "1 true 2", "0 false 1", "1 false 1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pending %q, want %q", got, want)
	}
	if _, err := NumberedBy([]byte("x")); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("error %v of what is no checkpoint", err)
	}
}
