package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// shiftedRows returns rows of four classes on a line, with class shares q. The posteriors are exact for equal shares.
// Labels come up to lag later.
func shiftedRows(seed uint64, before []batchtest.Row, n int, q []float64, lag int64) []batchtest.Row {
	rng := rand.New(rand.NewPCG(seed, 6))
	start := int64(1_700_000_000) * second
	if len(before) > 0 {
		start = before[len(before)-1].TS + second/10
	}
	nan := float32(math.NaN())
	for i := range n {
		y, u := 0, rng.Float64()
		for ; y < len(q)-1 && u >= q[y]; y++ {
			u -= q[y]
		}
		x := rng.NormFloat64() + 1.4*float64(y)
		z := make([]float32, len(q))
		for j := range z {
			d := x - 1.4*float64(j)
			z[j] = float32(-d * d / 2)
		}
		ts := start + int64(i)*second/10
		before = append(before, batchtest.Row{ID: fmt.Sprintf("%d-%d", seed, i), Model: "m", Version: "v1", TS: ts,
			LabelTS: ts + rng.Int64N(lag+1), Label: int32(y),
			Scores: z, Weight: nan, Served: nan})
	}
	return before
}

var (
	evenShares  = []float64{.25, .25, .25, .25}
	movedShares = []float64{.05, .15, .3, .5}
)

func classSetup() setup {
	s := alarmSetup(nil)
	s.classes = stats.ClassesModel
	s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1500, Alpha: .001}
	return s
}

// TestClassShiftInSnapshots: while class shares stay, distances and estimates show that. Once they move, both estimates
// give the shares, and the accuracy and calibration error that the labels show later, and the assumption is not
// rejected.
func TestClassShiftInSnapshots(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := shiftedRows(1, shiftedRows(2, nil, 4000, evenShares, 5*second), 3000, movedShares, 5*second)
	change := rows[4000].TS
	w := newWorld(t, classSetup(), worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	compared, moved := 0, 0
	for _, snap := range w.Finals() {
		u := snap.Unlabelled
		if snap.Predictions < 300 || u == nil || u.ReferenceTo.IsZero() || u.Classes == nil ||
			len(u.Classes.Shifts) < 2 {
			continue
		}
		start, end, refTo := snap.Window.Start.UnixNano(), snap.Window.End.UnixNano(), u.ReferenceTo.UnixNano()
		if start < change && end > change {
			continue
		}
		compared++
		ref, now := predictedClasses(t, rows, func(ts int64) bool { return ts < refTo }), predictedClasses(t, rows,
			func(ts int64) bool { return ts >= start && ts < end })
		want, err := unlabelled.Compare(ref, now, .001)
		if err != nil {
			t.Fatal(err)
		}
		all := distances(want)
		if *u.Classes.PSI != all.PSI || *u.Classes.JensenShannon != all.JensenShannon {
			t.Errorf("window from %s: PSI %+v, want %+v", snap.Window.Start, u.Classes.PSI, all.PSI)
		}
		if over := all.PSI.Value > all.PSI.Threshold; over != (start >= change) {
			t.Errorf("window from %s: PSI over its threshold: %v", snap.Window.Start, over)
		}
		shares := evenShares
		if start >= change {
			moved++
			shares = movedShares
		}
		checkShifts(t, &snap, shares)
	}
	if compared < 5 || moved < 3 {
		t.Errorf("%d windows compared, %d after the change", compared, moved)
	}
}

// checkShifts compares the estimates of a window with the shares that its rows were drawn with, and with its labels.
func checkShifts(t *testing.T, snap *record.Snapshot, shares []float64) {
	t.Helper()
	for _, s := range snap.Unlabelled.Classes.Shifts {
		if s.Rejected || s.Ridge > 0 || s.Unknown > 0 || len(s.Worst) != 4 {
			t.Errorf("window from %s: %+v", snap.Window.Start, s)
		}
		for _, c := range s.Worst {
			// With many windows and classes, 5 standard errors. Those of EM do not include the noise of the sample.
			if math.Abs(c.Share-shares[c.Class]) > 5*c.SE+.03 {
				t.Errorf("window from %s, %s: class %d has %+v, drawn by %v", snap.Window.Start, s.Method, c.Class, c,
					shares[c.Class])
			}
		}
		found := false
		for _, e := range snap.Unlabelled.Estimates {
			if e.Method != s.Method {
				continue
			}
			found = true
			if e.Miss == nil || math.Abs(e.Miss.Z) > 4.5 || e.Assumption == "" || e.ECE == nil {
				t.Errorf("window from %s: %+v, miss %+v", snap.Window.Start, e, e.Miss)
				// the ECE of the labels is biased upward by the noise of some 600 rows in 15 bins
			} else if math.Abs(*e.ECE-*snap.Raw.ECE) > .08 {
				t.Errorf("window from %s, %s: ECE %v, by labels %v", snap.Window.Start, s.Method, *e.ECE, *snap.Raw.ECE)
			}
		}
		if !found {
			t.Errorf("no estimate by %s", s.Method)
		}
	}
}

// predictedClasses counts rows by predicted class.
func predictedClasses(t *testing.T, rows []batchtest.Row, keep func(ts int64) bool) []float64 {
	h := make([]float64, stage.ClassBins)
	for _, r := range rows {
		if !keep(r.TS) {
			continue
		}
		top := 0
		for j, z := range r.Scores {
			if z > r.Scores[top] {
				top = j
			}
		}
		h[top]++
	}
	return h
}

// TestClassRule: a rule on the distance of predicted classes fires once shares move, and not before.
func TestClassRule(t *testing.T) {
	t.Parallel()
	rows := shiftedRows(3, shiftedRows(4, nil, 4000, evenShares, 5*second), 2000, movedShares, 5*second)
	s := classSetup()
	s.model.Rules = []rule.Config{{Name: "classes", Kind: rule.Distance, Measure: rule.PSI, Score: rule.ScoreClass,
		Severity: "warning", Reference: alarm.Pinned, ReferenceRows: 1500,
		Rows: 500, MinRows: 300, Fire: .05, Clear: .02, Alpha: .001}}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	if len(alerts) == 0 || alerts[0].State != stage.Firing || !strings.Contains(alerts[0].Measure, "class") {
		t.Fatalf("alerts %+v", alerts)
	}
	if at := alerts[0].At.UnixNano(); at < rows[4000].TS || at > rows[4000].TS+60*second {
		t.Errorf("it fires at %s", alerts[0].At)
	}
}

func publishedFor(t *testing.T, w *world, reason string) []record.Calibrator {
	var out []record.Calibrator
	for _, c := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators) {
		if c.Published && c.Reason == reason {
			out = append(out, c)
		}
	}
	return out
}

// TestLabelShiftCorrection: once class shares have moved, class weights near the true ones come into force. With
// at_once this happens before any label of the new rows has come; as a candidate, when the labels have proved them
// better. They help on the rows that follow, and crashes leave no trace.
func TestLabelShiftCorrection(t *testing.T) {
	for _, mode := range []string{refit.ShiftAtOnce, refit.ShiftCandidate} {
		t.Run(mode, func(t *testing.T) {
			if mode == refit.ShiftCandidate {
				testsize.Slow(t)
			}
			t.Parallel()
			const lag = 20 * second
			rows := shiftedRows(5, shiftedRows(6, nil, 4000, evenShares, lag), 6000, movedShares, lag)
			change := rows[4000].TS
			s := classSetup()
			s.model.Refit.LabelShift, s.model.Refit.FreshRows = mode, 1000
			in := worldtest.Stream(t, rows, 2, 50)
			w := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
			got := publishedFor(t, w, "label_shift")
			if len(got) == 0 {
				t.Fatal("no correction was published")
			}
			first := got[0].EffectiveFrom.UnixNano()
			if first < change || mode == refit.ShiftAtOnce && first > change+150*second {
				t.Errorf("the first correction is from %s, shares moved at %s", got[0].EffectiveFrom,
					pipeline.Format(change))
			}
			if proved := got[0].Evidence.LogE >= got[0].Evidence.LogENeeded &&
				got[0].Evidence.TestRows > 0; proved != (mode == refit.ShiftCandidate) {
				t.Errorf("evidence %+v", got[0].Evidence)
			}
			cal, err := calibrator.Decode(got[0].Calibrator)
			if err != nil {
				t.Fatal(err)
			}
			weights := cal.(*calibrator.ClassWeights).Weights()
			for j, x := range movedShares {
				// 1,000 predictions, about 50 of them of class 0
				if want := x * 4; weights[j] < want/2.5 || weights[j] > want*2.5 {
					t.Errorf("weight of class %d is %v, want about %v", j, weights[j], want)
				}
			}
			helped := 0
			for _, snap := range w.Finals() {
				if snap.InForce != nil && snap.Window.Start.UnixNano() > first && snap.Labelled > 500 {
					helped++
					if !(*snap.Calibrated.NLL < *snap.Raw.NLL-.02) {
						t.Errorf("window from %s: NLL %v, raw %v", snap.Window.Start, *snap.Calibrated.NLL,
							*snap.Raw.NLL)
					}
				}
			}
			if helped == 0 {
				t.Error("no window after the correction")
			}
			crashed := newWorld(t, s, in, 2)
			crashed.Save, crashed.Crash = .2, .02
			if crashed.run(worldtest.AnyOrder).Hash() != w.Hash() {
				t.Error("crashes leave a trace in the state")
			}
		})
	}
}

// TestNoCorrectionOfOtherShifts: if inputs become noisy and shares stay, the test of the assumption fails and nothing
// is corrected.
func TestNoCorrectionOfOtherShifts(t *testing.T) {
	t.Parallel()
	rows := shiftedRows(7, nil, 7000, evenShares, 5*second)
	rng := rand.New(rand.NewPCG(8, 8))
	// the inputs are farther apart than the model was made for, so it is too sure and predicts the outer classes more
	// often
	for i := 3000; i < len(rows); i++ {
		d := float32(rng.NormFloat64() * 3)
		for j := range rows[i].Scores {
			rows[i].Scores[j] += d * float32(j) * 1.4
		}
		rows[i].Label = -1
	}
	s := classSetup()
	s.model.Refit.LabelShift, s.model.Refit.FreshRows = refit.ShiftAtOnce, 1000
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	if got := publishedFor(t, w, "label_shift"); len(got) > 0 {
		t.Errorf("%d corrections, the first: %s", len(got), got[0].Outcome)
	}
}

// TestClassesAreCountedByKey: classes are counted for the whole version only, for slices too, or not at all.
func TestClassesAreCountedByKey(t *testing.T) {
	t.Parallel()
	rows := shiftedRows(9, nil, 500, evenShares, 0)
	for i := range rows {
		rows[i].Region = []string{"a", "b"}[i%2]
	}
	for _, mode := range []string{"", stats.ClassesNone, stats.ClassesModel, stats.ClassesSlices} {
		s := classSetup()
		s.classes, s.slices = mode, []string{"region"}
		w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
		counted := map[string]int64{"": 0, "region=a": 0, "region=b": 0}
		for _, r := range w.Panes {
			m, err := pipeline.DecodePane(r.Value)
			w.Must(err)
			for _, c := range m.Cells {
				set := new(acc.Set)
				w.Must(set.UnmarshalBinary(c.Set))
				if set.Classes != nil {
					n, _ := set.Classes.Total()
					counted[c.Slice] += n
				}
			}
		}
		for slice, n := range counted {
			if want := mode == stats.ClassesSlices || mode == stats.ClassesModel && slice == ""; (n > 0) != want {
				t.Errorf("classes %q, slice %q: %d predictions by class", mode, slice, n)
			}
		}
	}
}
