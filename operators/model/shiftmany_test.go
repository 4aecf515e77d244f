package model

import (
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
)

// TestCorrectionOfManyClasses: of 150 classes the weights put into force before labels are those of the plain
// computation, help on the rows that follow, name the assumption, and leave no trace of crashes.
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
	normalised(prior)
	normalised(moved)
	rows := manyRows(1, manyRows(2, nil, still, prior, prior), 2700, prior, moved)
	change := rows[still].TS
	for i := range rows {
		rows[i].LabelTS = rows[i].TS + 90*second
	}
	s := classSetup()
	s.model.Unlabelled.ReferenceRows = 1200
	s.model.Windows = s.model.Windows[:1]
	s.model.Refit.Method, s.model.Refit.LabelShift, s.model.Refit.FreshRows = refit.MethodNone, refit.ShiftAtOnce, 700
	in := stream(t, rows, 2, 100)
	w := newWorld(t, s, in, 1).run(anyOrder)
	got := publishedFor(t, w, "label_shift")
	if len(got) == 0 {
		t.Fatal("no correction was published")
	}
	first := got[0].EffectiveFrom.UnixNano()
	if first < change {
		t.Errorf("a correction from %s, shares moved at %s", got[0].EffectiveFrom, pipeline.Format(change))
	}
	helped := 0
	for _, snap := range w.finals() {
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
	crashed.save, crashed.crash = .05, .01
	if crashed.run(anyOrder).hash() != w.hash() {
		t.Error("crashes leave a trace in the state")
	}
}

func normalised(q []float64) []float64 {
	var sum float64
	for _, x := range q {
		sum += x
	}
	for j := range q {
		q[j] /= sum
	}
	return q
}
