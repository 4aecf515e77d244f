package model

import (
	"iter"
	"time"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// This file has the methods that the runtime calls (pipeline.Task).

// Sections implements pipeline.Task. Counts are restored first, because restoring the models adds to them when a slice
// column is gone.
func (t *Task) Sections() []pipeline.Section {
	return []pipeline.Section{
		t.counts.CheckpointSection(),
		modelSection(t),
		{Name: "slices", Version: 1, State: t.sliceSection()},
		t.idleSection(),
		t.servedSection(),
		t.servedSlicesSection(),
		{Name: "classes", Version: 1, State: t.classesSection()},
		lossesSection(t),
	}
}

// Decided implements pipeline.Task. Outputs are deterministic, so a repeat overwrites itself and needs no fence.
func (t *Task) Decided() pipeline.Outputs {
	return pipeline.Outputs{Before: t.out, Dirty: t.dirty, Full: len(t.out) > 4096}
}

// Written implements pipeline.Task.
func (t *Task) Written() { t.out, t.dirty = nil, false }

// Skip leaves out an increment or an order (pipeline.Registered). It refuses to skip a punctuation: what ends the
// task there is a pane, which any other punctuation would process next.
func (t *Task) Skip(r pipeline.Record, why string) bool {
	if r.Offset < t.next {
		return true
	}
	if m, err := pipeline.DecodePane(r.Value); err == nil && m.Punctuation {
		return false
	}
	t.counts.Add(CountBadPanes, 1)
	out := pipeline.NewOut(t.counts)
	out.Skipped(r, 0, why)
	t.out = append(t.out, out.Drain()...)
	t.next, t.dirty = r.Offset+1, true
	return true
}

// Remembered returns the latest alert of every rule and alarm, the latest refit decision of every version, and the
// latest snapshot of every window. A restarted process shows these until new ones come. Snapshots are many, so each is
// decoded when the caller asks for it.
func (t *Task) Remembered() (decided []any, snapshots iter.Seq2[*record.Snapshot, error]) {
	var encoded []func() [][]byte
	for _, v := range t.versions() {
		if c := v.Decision.Record; c != nil {
			decided = append(decided, c)
		}
		for _, k := range v.keys {
			if k.alerted {
				k.wake(&t.fleet)
			}
			encoded = append(encoded, k.remembered())
			for _, a := range k.Alerts {
				if a.Last.Record != nil {
					decided = append(decided, a.Last.Record)
				}
			}
		}
	}
	return decided, func(yield func(*record.Snapshot, error) bool) {
		for _, of := range encoded {
			for _, b := range of() {
				if !yield(record.Decode[record.Snapshot](b)) {
					return
				}
			}
		}
	}
}

// Report prepares the task's status (pipeline.Registered).
func (t *Task) Report(caughtUp, active bool) (show func()) {
	old := t.status.Load()
	// A model that waits for a fit still has panes to process.
	caughtUp = caughtUp && len(t.turns.waiting) == 0 && !t.refits.Computing()
	st := &pipeline.TaskStatus{Task: "model", Partition: t.partition, Next: map[string]int64{"panes": t.next},
		CaughtUp: caughtUp, Counts: t.counts.All()}
	if t.still++; active {
		t.still = 0
	}
	if old != nil && t.still > 0 {
		st.StateHash = old.StateHash
	}
	for _, p := range t.shards.all {
		st.PanesTaken, st.Epochs = append(st.PanesTaken, p.seq), append(st.Epochs, p.epoch)
	}
	st.Versions = t.versionsStatus()
	for _, l := range t.shards.losses.all { // copies: the task sets bounds later
		st.Losses = append(st.Losses, &l)
	}
	if b := t.shards.barrier(); len(t.shards.all) > 0 && b != minPane {
		st.WM = b * t.cfg.Pane
		st.Watermark = pipeline.Format(st.WM)
	}
	// The hash costs more than a checkpoint, and is of use once the stream has ended. Between panes of one that goes on
	// a single report may find nothing new, but not two.
	if caughtUp && t.still > 1 && st.StateHash == nil {
		h, err := t.Hash()
		if err != nil {
			t.log.Error("state hash", "err", err)
		}
		st.StateHash = h
	}
	return func() {
		if st.Active = time.Now(); old != nil && !active {
			st.Active = old.Active
		}
		t.status.Store(st)
	}
}

// Status returns the latest status, nil before the first.
func (t *Task) Status() *pipeline.TaskStatus { return t.status.Load() }
