package model

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
)

// TestClassShiftOfManyClasses: of 200 classes, both methods estimate those with the most labels one by one and the
// others together. They find what has moved, and the state can be restored.
func TestClassShiftOfManyClasses(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const k = 200
	prior, moved := make([]float64, k), make([]float64, k)
	var sums [2]float64
	for j := range prior {
		prior[j] = 1 / float64(10+j)
		moved[j] = prior[j]
		if j%7 == 0 && j < 60 {
			moved[j] *= 4
		}
		sums[0], sums[1] = sums[0]+prior[j], sums[1]+moved[j]
	}
	for j := range prior {
		prior[j], moved[j] = prior[j]/sums[0], moved[j]/sums[1]
	}
	rows := batchtest.ManyClasses(1, batchtest.ManyClasses(2, nil, 3100, prior, prior), 1800, prior, moved)
	change := rows[3100].TS
	s := classSetup()
	s.model.Unlabelled.ReferenceRows = 3000
	s.model.Windows = s.model.Windows[:1]
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 100), 1).run(worldtest.AnyOrder)
	found, rose, of := map[string]int{}, 0, 0
	for _, snap := range w.Finals() {
		u := snap.Unlabelled
		if snap.Predictions < 300 || u == nil || u.Classes == nil || snap.Window.Start.UnixNano() < change {
			continue
		}
		for _, x := range u.Classes.Shifts {
			found[x.Method]++
			if x.Pooled != k-shift.MaxClasses+1 || len(x.Worst) != 5 {
				t.Errorf("window from %s: %+v", snap.Window.Start, x)
			}
			for _, c := range x.Worst {
				if c.Class >= 0 && c.Class < 60 && c.Class%7 == 0 {
					if of++; c.Share > c.Reference {
						rose++
					}
				}
				if c.Class >= 0 && math.Abs(c.Share-moved[c.Class]) > 5*c.SE+.02 {
					t.Errorf("window from %s, %s: class %d has %+v, drawn by %v", snap.Window.Start, x.Method, c.Class,
						c, moved[c.Class])
				}
			}
		}
		for _, e := range u.Estimates {
			if found[e.Method] > 0 && (e.Assumption != shift.PooledAssumption || e.Miss == nil ||
				math.Abs(e.Miss.Z) > 4.5) {
				t.Errorf("window from %s: %+v, miss %+v", snap.Window.Start, e, e.Miss)
			}
		}
	}
	if found[shift.MethodBBSE] < 2 || found[shift.MethodEM] < 2 {
		t.Errorf("estimates by method: %v, want both", found)
	}
	if of < 5 || rose < of*9/10 {
		t.Errorf("%d classes have more rows now and moved most, %d of them are said to have more", of, rose)
	}
	restored(t, &s, w.Model, "at the end")
}

// TestCorrectionOfManyClasses: of 150 classes, class weights come into force before labels and help on the rows that
// follow. Crashes leave no trace.
func TestCorrectionOfManyClasses(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const k, still = 150, 1500
	prior, moved := make([]float64, k), make([]float64, k)
	for j := range prior {
		prior[j] = 1 / float64(20+j)
		moved[j] = prior[j]
		if j%11 == 0 {
			moved[j] *= 6
		}
	}
	batchtest.Normalise(prior)
	batchtest.Normalise(moved)
	rows := batchtest.ManyClasses(1, batchtest.ManyClasses(2, nil, still, prior, prior), 2400, prior, moved)
	change := rows[still].TS
	for i := range rows {
		rows[i].LabelTS = rows[i].TS + 90*second
	}
	s := classSetup()
	s.model.Unlabelled.ReferenceRows = 1200
	s.model.Windows = s.model.Windows[:1]
	s.model.Refit.Method, s.model.Refit.LabelShift, s.model.Refit.FreshRows = refit.MethodNone, refit.ShiftAtOnce, 700
	in := worldtest.Stream(t, rows, 2, 100)
	w := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	got := publishedFor(t, w, "label_shift")
	if len(got) == 0 {
		t.Fatal("no correction was published")
	}
	first := got[0].EffectiveFrom.UnixNano()
	if first < change {
		t.Errorf("a correction from %s, shares moved at %s", got[0].EffectiveFrom, pipeline.Format(change))
	}
	helped := 0
	for _, snap := range w.Finals() {
		if snap.InForce != nil && snap.Window.Start.UnixNano() > first && snap.Labelled > 200 {
			helped++
			t.Logf("window from %s: NLL %.4f, raw %.4f", snap.Window.Start, *snap.Calibrated.NLL, *snap.Raw.NLL)
			if !(*snap.Calibrated.NLL < *snap.Raw.NLL-.02) {
				t.Errorf("window from %s: NLL %v, raw %v", snap.Window.Start, *snap.Calibrated.NLL, *snap.Raw.NLL)
			}
		}
	}
	if helped == 0 {
		t.Error("no window after the correction")
	}
	crashed := newWorld(t, s, in, 2)
	crashed.Save, crashed.Crash = .05, .01
	if crashed.run(worldtest.AnyOrder).Hash() != w.Hash() {
		t.Error("crashes leave a trace in the state")
	}
}
