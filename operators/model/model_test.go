package model

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// hostilePanes returns messages that decode but do not come from a shard of this configuration.
func hostilePanes(t testing.TB, s *setup) map[string]*pipeline.PaneMessage {
	cfg := s.model.Acc
	cfg.K = 4
	set, err := acc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := set.AppendBinary(nil)
	cfg.SoftBins = 3
	foreign, _ := acc.New(cfg)
	other, _ := foreign.AppendBinary(nil)
	cell := func(k int, set []byte) []pipeline.Cell { return []pipeline.Cell{{Version: "v", K: k, Set: set}} }
	return map[string]*pipeline.PaneMessage{
		"K of the cell is not the set's": {Cells: cell(5, body)},
		"K is huge":                      {Cells: cell(math.MaxInt, body)},
		"K is negative":                  {Cells: cell(-1, body)},
		"K is 0":                         {Cells: cell(0, body)},
		"other statistics":               {Cells: cell(4, other)},
		"no set":                         {Cells: cell(4, []byte("x"))},
		"other pane length":              {Length: 1, Cells: cell(4, body)},
	}
}

// TestForeignPanesAreCountedNotFatal: an unusable message is counted, and the task goes on.
func TestForeignPanesAreCountedNotFatal(t *testing.T) {
	s := defaultSetup()
	for name, m := range hostilePanes(t, &s) {
		task := s.task()
		pane := pipeline.PaneIndex(batchtest.Start, s.model.Pane)
		good := &pipeline.PaneMessage{Of: 1, Seq: 1, Length: s.model.Pane, Punctuation: true, Closed: pane}
		m.Model, m.LabelPane = "m", pane
		if m.Of == 0 {
			m.Of = 1
		}
		if m.Seq == 0 {
			m.Seq = 2
		}
		if m.Length == 0 {
			m.Length = s.model.Pane
		}
		after := &pipeline.PaneMessage{Of: 1, Seq: 3, Length: s.model.Pane, Punctuation: true, Closed: pane + 10}
		for i, x := range []*pipeline.PaneMessage{good, m, after} {
			if err := task.Take(context.Background(), pipeline.Record{Input: pipeline.Panes, Offset: int64(i),
				Value: pipeline.AppendPane(nil, x)}); err != nil {
				t.Fatalf("%s: message %d: %v", name, i, err)
			}
		}
		if n := task.counts.All()[CountBadPanes]; n == 0 || task.next != 3 {
			t.Errorf("%s: %d messages refused, next offset %d", name, n, task.next)
		}
	}
}

// TestLostPanesAreCounted: if retention has removed messages, or the panes topic begins late, the task goes on and
// counts how many are missing.
func TestLostPanesAreCounted(t *testing.T) {
	s := defaultSetup()
	task := s.task()
	for i, seq := range []uint64{4, 5, 5, 9} {
		m := &pipeline.PaneMessage{Of: 1, Seq: seq, Length: s.model.Pane, Punctuation: true, Closed: int64(i)}
		if err := task.Take(context.Background(), pipeline.Record{Input: pipeline.Panes, Offset: int64(i),
			Value: pipeline.AppendPane(nil, m)}); err != nil {
			t.Fatal(err)
		}
	}
	n := task.counts.All()
	if n[CountLostPanes] != 6 || n[CountRepeats] != 1 || n[CountPanes] != 3 || n[CountBadPanes] != 0 {
		t.Errorf("counts %v, want 6 lost, 1 repeat, 3 taken, 0 refused", n)
	}
}

// TestGapOfYears: keys whose windows are long final must not walk every slide of a gap in event time.
func TestGapOfYears(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(51, batchtest.Options{N: 100, Regions: 2})
	for i := range rows {
		rows[i].Region = "r0"
	}
	const year = 365 * 24 * 3600 * second
	later := batchtest.Rows(52, batchtest.Options{N: 100, Regions: 1, Start: batchtest.Start + 200*year})
	for i := range later {
		later[i].Region = "r1"
	}
	s := defaultSetup()
	s.slices = []string{"region"}
	start := time.Now()
	w := newWorld(t, s, worldtest.Stream(t, append(rows, later...), 1, 50), 1).run(worldtest.AnyOrder)
	// 200 years are 315 million slides. Walking them would take seconds to minutes, and gigabytes.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	if n := w.Counts()["labelled"]; n != 200 {
		t.Errorf("%d rows, want 200", n)
	}
}

// FuzzModelState restores hostile state and then uses what was accepted.
func FuzzModelState(f *testing.F) {
	s := defaultSetup()
	s.model.Windows, s.model.SampleRows = s.model.Windows[1:3], 20
	s.model.Acc.SampleRows = 5
	rows := batchtest.Rows(53, batchtest.Options{N: 60, K: 2, Step: second})
	w := newWorld(f, s, worldtest.Stream(f, rows, 1, 20), 1)
	for range 5 {
		w.Step(worldtest.AnyOrder)
	}
	addState(f, taskState{w.Model})
	w.run(worldtest.AnyOrder)
	addState(f, taskState{w.Model})
	addState(f, taskState{s.task()})
	f.Fuzz(func(t *testing.T, b []byte) {
		task := s.task()
		if err := (taskState{task}).RestoreState(b); err != nil {
			return
		}
		_, _ = task.Remembered()
		if _, err := (taskState{task}).AppendState(nil); err != nil {
			t.Fatalf("taken and not writable: %v", err)
		}
		if len(task.shards.all) > 0 && len(task.shards.all) < 100 {
			// Errors are fine; a panic is not.
			err := task.Take(context.Background(), pipeline.Record{Offset: max(task.next, 0),
				Value: pipeline.AppendPane(nil, &pipeline.PaneMessage{Of: len(task.shards.all), Length: s.model.Pane,
					Seq: task.shards.all[0].seq + 1, Punctuation: true, Closed: task.shards.all[0].closed})})
			if errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})
}

func addState(f *testing.F, s pipeline.State) {
	f.Helper()
	b, err := s.AppendState(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for i := 0; i < len(b); i += 1 + len(b)/10 {
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x55
		f.Add(bad)
	}
}

// FuzzShardState restores hostile state into each operator of a shard and then processes rows.
func FuzzShardState(f *testing.F) {
	s := defaultSetup()
	s.slices = []string{"region"}
	s.model.Acc.SampleRows = 5
	rows := batchtest.Rows(54, batchtest.Options{N: 40, K: 2, Step: second, Regions: 2, Served: true})
	in := worldtest.Stream(f, rows, 1, 10)
	w := newWorld(f, s, in, 1)
	for range 5 {
		w.Step(worldtest.AnyOrder)
	}
	for i, section := range w.Shards[0].Sections() {
		b, err := section.State.AppendState(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), b)
		for j := 0; j < len(b); j += 1 + len(b)/6 {
			bad := append([]byte(nil), b...)
			bad[j] ^= 0x55
			f.Add(byte(i), bad)
		}
	}
	f.Fuzz(func(t *testing.T, i byte, b []byte) {
		sh := s.shard(0, 1)
		all := sh.Sections()
		section := all[int(i)%len(all)]
		if err := section.State.RestoreState(b); err != nil {
			return
		}
		if _, err := section.State.AppendState(nil); err != nil {
			t.Fatalf("%s: taken and not writable: %v", section.Name, err)
		}
		for _, lane := range in[0] {
			for _, r := range lane {
				r.Offset = math.MaxInt64 - 1
				if err := sh.Take(context.Background(), r); err != nil {
					return
				}
			}
		}
	})
}
