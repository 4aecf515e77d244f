package model

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// latest returns the last value of each key of some streams, as compaction leaves them.
func latest(ms []pipeline.Message, of ...pipeline.Stream) map[string][]byte {
	out := map[string][]byte{}
	for _, m := range ms {
		if slices.Contains(of, m.Stream) {
			out[string(m.Key)] = m.Value
		}
	}
	return out
}

// again restores the task of a world, and returns what it publishes again.
func again(w *world, lacks func(string, int) bool) []pipeline.Message {
	w.T.Helper()
	w.SaveModel()
	w.Model = w.Parts.NewTask()
	w.Must(pipeline.RestoreCheckpoint(w.SavedModel, w.Model.Sections(), nil))
	hash := w.Hash()
	n, err := ServeAgain(w.Model, lacks)
	w.Must(err)
	n += FireAgain(w.Model)
	out := w.Model.Outputs()
	if len(out) != n || w.Hash() != hash {
		w.T.Errorf("%d published, told were %d; the state is the same: %t", len(out), n, w.Hash() == hash)
	}
	return out
}

func anything(string, int) bool { return true }

// TestFiringAlertsAgain: an alert that fires is published again with the bytes of its latest record.
func TestFiringAlertsAgain(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(31, batchtest.Options{N: 2500, MaxLag: 5 * second, Sharpness: 3})
	s := defaultSetup()
	s.model.Refit.Method = "none"
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	want := latest(w.Outputs, pipeline.StreamAlerts)
	if len(want) != 1 {
		t.Fatalf("%d alerts, want one", len(want))
	}
	if got := again(w, anything); !maps.EqualFunc(latest(got, pipeline.StreamAlerts), want, bytes.Equal) {
		t.Errorf("published again: %+v, want %s", got, want)
	}
}

// TestCalibratorsAgain: the calibrator in force and its correction are published again where the topic lacks them.
func TestCalibratorsAgain(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(31, batchtest.Options{N: 6000, MaxLag: 5 * second, Sharpness: 3})
	s := defaultSetup()
	s.model.Refit.Method, s.model.Refit.FirstAnswer, s.model.Refit.Follow = "temperature", true, true
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	want := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
	if len(want) == 0 {
		t.Fatal("no calibrator was published")
	}
	last := want[len(want)-1]
	tops := worldtest.DecodeAll[record.TopCorrection](t, w.Outputs, pipeline.StreamTops)
	out := again(w, anything)
	got := worldtest.DecodeAll[record.Calibrator](t, out, pipeline.StreamCalibrators)
	if len(got) != 1 || got[0].Revision != last.Revision || got[0].EffectiveFrom != last.EffectiveFrom ||
		!got[0].Published || !bytes.Equal(got[0].Calibrator, last.Calibrator) {
		t.Errorf("published again: %+v, want %+v", got, last)
	}
	top := worldtest.DecodeAll[record.TopCorrection](t, out, pipeline.StreamTops)
	if f := tops[len(tops)-1]; len(top) != 1 || top[0].EffectiveFrom != f.EffectiveFrom ||
		top[0].Revision != f.Revision || top[0].Slope != f.Slope || top[0].Intercept != f.Intercept {
		t.Errorf("corrections published again: %+v, want %+v", top, f)
	}
	if out := again(w, func(_ string, revision int) bool { return revision > last.Revision }); len(out) != 0 {
		t.Errorf("published again, though the topic has it: %+v", out)
	}
}
