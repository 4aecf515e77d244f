package model

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestEpochs: a shard that goes on with a new state counts from 1 again, what the old state still sends is dropped, and
// a restored task knows both.
func TestEpochs(t *testing.T) {
	s := defaultSetup()
	task, offset := s.task(), int64(0)
	send := func(epoch, seq uint64, closed int64, loss *record.Loss) {
		t.Helper()
		m := &pipeline.PaneMessage{Of: 1, Epoch: epoch, Seq: seq, Length: s.model.Pane, Punctuation: true,
			Closed: closed, Loss: loss}
		r := pipeline.Record{Input: pipeline.Panes, Offset: offset, Value: pipeline.AppendPane(nil, m)}
		if err := task.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		offset++
	}
	want := func(what string, n int64) {
		t.Helper()
		if got := task.counts.All()[what]; got != n {
			t.Errorf("%s: %d, want %d", what, got, n)
		}
	}
	send(1, 1, 10, nil)
	send(1, 2, 11, nil)
	send(2, 1, 12, &record.Loss{Task: "shards/0", Since: record.At(100), Until: record.At(200)})
	send(1, 3, 13, nil) // of a process that has the old state
	cp, err := pipeline.EncodeCheckpoint(task.Sections())
	if err != nil {
		t.Fatal(err)
	}
	task = s.task()
	if err := pipeline.RestoreCheckpoint(cp.Data, task.Sections(), nil); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	task.shards.log = slog.New(slog.NewTextHandler(&log, nil))
	send(1, 4, 14, nil)
	send(2, 2, 15, nil)
	send(2, 2, 15, nil)
	if strings.Count(log.String(), "rows of a shard count nowhere") != 1 {
		t.Errorf("log: %s", &log)
	}
	want(CountPanes, 4)
	want(CountEpochs, 1)
	want(CountStale, 2)
	want(CountRepeats, 1)
	want(CountLostPanes, 0)
	if got := task.shards.barrier(); got != 15 {
		t.Errorf("barrier %d, want 15", got)
	}
	for _, c := range []struct {
		start, end int64
		touched    bool
	}{{0, 100, false}, {0, 101, true}, {150, 160, true}, {200, 300, false}} {
		if got := task.shards.losses.touching(c.start, c.end); (got != nil) != c.touched {
			t.Errorf("interval %d to %d: %+v, want touched %v", c.start, c.end, got, c.touched)
		}
	}
}

// TestBegunMidway: a task whose state was lost takes no repeat of what that had counted, and misses nothing of a shard
// that it had not heard of.
func TestBegunMidway(t *testing.T) {
	cp, err := Begun(7, []Heard{{Shard: 1, Of: 2, Epoch: 5, Seq: 40, Closed: 3}}, &record.Loss{Task: "models/0"})
	if err != nil {
		t.Fatal(err)
	}
	s := defaultSetup()
	task := s.task()
	if err := pipeline.RestoreCheckpoint(cp.Data, task.Sections(), nil); err != nil {
		t.Fatal(err)
	}
	for i, m := range []pipeline.PaneMessage{{Shard: 1, Epoch: 5, Seq: 40}, {Shard: 1, Epoch: 5, Seq: 41},
		{Shard: 0, Epoch: 6, Seq: 90}} {
		m.Of, m.Length, m.Punctuation, m.Closed = 2, s.model.Pane, true, 4
		r := pipeline.Record{Input: pipeline.Panes, Offset: 7 + int64(i), Value: pipeline.AppendPane(nil, &m)}
		if err := task.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	n := task.counts.All()
	if n[CountRepeats] != 1 || n[CountPanes] != 2 || n[CountLostPanes] != 0 || task.Next()[pipeline.Panes] != 10 {
		t.Errorf("counts %v, next %v", n, task.Next())
	}
	if l := task.shards.losses.own(); l == nil || l.Until != record.At(4*s.model.Pane) {
		t.Errorf("loss %+v, want it until what the shards had closed", l)
	}
}

// TestUndone: of a restored backup's shards no message counts that came after it was made, before and after a further
// checkpoint, and all do that they send since.
func TestUndone(t *testing.T) {
	s := defaultSetup()
	task, offset := s.task(), int64(0)
	again := func(edits map[string]pipeline.Edit) {
		t.Helper()
		cp, err := pipeline.EncodeCheckpoint(task.Sections())
		if err != nil {
			t.Fatal(err)
		}
		st := pipeline.Stored{Read: func() ([]byte, error) { return cp.Data, nil }}
		if cp, err = pipeline.Amend(st, edits, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		task = s.task()
		if err := pipeline.RestoreCheckpoint(cp.Data, task.Sections(), nil); err != nil {
			t.Fatal(err)
		}
	}
	send := func(shard int, epoch, seq uint64) {
		t.Helper()
		m := &pipeline.PaneMessage{Shard: shard, Of: 2, Epoch: epoch, Seq: seq, Length: s.model.Pane, Punctuation: true,
			Closed: int64(seq)}
		r := pipeline.Record{Input: pipeline.Panes, Offset: offset, Value: pipeline.AppendPane(nil, m)}
		if err := task.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		offset++
	}
	want := func(panes, undone, stale, repeats int64) {
		t.Helper()
		n := task.counts.All()
		if n[CountPanes] != panes || n[CountUndone] != undone || n[CountStale] != stale || n[CountRepeats] != repeats ||
			n[CountLostPanes] != 0 {
			t.Errorf("counts %v, want %d panes, %d undone, %d stale, %d repeats", n, panes, undone, stale, repeats)
		}
	}
	send(0, 11, 1)
	send(1, 13, 1)
	// The backup has three messages of shard 0, of which the task had read one, and one of shard 1.
	again(Undoing([]End{{Shard: 0, Epoch: 11, Seq: 3}, {Shard: 1, Epoch: 13, Seq: 1}}))
	send(0, 11, 2)
	send(1, 13, 2) // undone
	send(0, 11, 3)
	send(0, 11, 4) // undone
	want(4, 2, 0, 0)
	again(nil)
	send(0, 11, 3) // written again from the backup
	send(1, 15, 1)
	send(0, 17, 1)
	send(0, 17, 2)
	send(0, 11, 5) // of a process that has the old state still
	want(7, 2, 1, 1)
}
