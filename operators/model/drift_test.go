package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// predicted returns the prediction of the model for a row.
func predicted(t *testing.T, r batchtest.Row) kernel.Row {
	t.Helper()
	row, ok := kernel.Logits(r.Scores, make([]float64, len(r.Scores)))
	if !ok {
		t.Fatalf("row %s: no logits", r.ID)
	}
	return row
}

// confidences returns the maximum probabilities of the rows that keep selects.
func confidences(t *testing.T, rows []batchtest.Row, keep func(batchtest.Row) bool) []float64 {
	var out []float64
	for _, r := range rows {
		if !keep(r) {
			continue
		}
		out = append(out, predicted(t, r).Conf)
	}
	return out
}

func histogram(c []float64) []float64 {
	h := make([]float64, stage.ScoreBins)
	for _, x := range c {
		h[max(0, int(math.Ceil(x*stage.ScoreBins))-1)]++
	}
	return h
}

// TestUnlabelledInSnapshots compares what windows say before labels with what the rows themselves give. A window that
// is part of the reference is not compared with it. No distance exceeds its threshold while nothing changes, and all do
// once confidences move.
func TestUnlabelledInSnapshots(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(101, episode(102, nil, 4800, 1), 2400, 3)
	change := rows[4800].TS
	s := alarmSetup(nil)
	s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1500, Alpha: .001}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	var refTo int64
	compared, moved := 0, 0
	var last record.Range
	for _, snap := range w.Finals() {
		u := snap.Unlabelled
		if snap.Predictions < 10 { // the last one
			continue
		}
		if u == nil || u.Rows != snap.Predictions || len(u.Estimates) == 0 {
			t.Fatalf("window %s to %s: %+v", snap.Window.Start, snap.Window.End, u)
		}
		start, end := snap.Window.Start.UnixNano(), snap.Window.End.UnixNano()
		if u.ReferenceTo.IsZero() {
			continue
		}
		refTo = u.ReferenceTo.UnixNano()
		if start < refTo {
			t.Errorf("window from %s is compared with a reference up to %s", snap.Window.Start, u.ReferenceTo)
		}
		ref := histogram(confidences(t, rows, func(r batchtest.Row) bool { return r.TS < refTo }))
		now := histogram(confidences(t, rows, func(r batchtest.Row) bool { return r.TS >= start && r.TS < end }))
		want, err := unlabelled.Compare(ref, now, .001)
		if err != nil {
			t.Fatal(err)
		}
		got := u.Distances["msp"]
		if got != distances(want) {
			t.Errorf("window from %s: distances %+v, want %+v", snap.Window.Start, got, want)
		}
		compared++
		over := []bool{want.KS.Exceeds(), want.Wasserstein.Exceeds(), want.PSI.Exceeds(), want.JensenShannon.Exceeds()}
		if end <= change && slices.Contains(over, true) || start >= change && slices.Contains(over, false) {
			t.Errorf("window from %s, the change is at %d: over %v", snap.Window.Start, change, over)
		}
		checkRange(t, u)
		if u.Range.Blocks >= last.Blocks {
			last = *u.Range
		}
		if start >= change {
			moved++
			shift := u.Estimates[1]
			// Confidences rose and accuracy did not, so the assumption fails, and the rows or labels show it.
			if !shift.Rejected && (shift.Miss == nil || shift.Miss.Z < 3) || shift.Assumption == "" {
				t.Errorf("window from %s: estimate %+v, miss %+v", snap.Window.Start, shift, shift.Miss)
			}
		}
	}
	if compared < 5 || moved < 2 {
		t.Errorf("%d windows compared, %d after the change", compared, moved)
	}
	// The labels after the change have shown how wrong ranges are.
	if last.Blocks < 10 || last.Margin == 0 || last.Known {
		t.Errorf("last range %+v", last)
	}
}

// checkRange: the range is the hull of both estimates and its margin.
func checkRange(t *testing.T, u *record.Unlabelled) {
	t.Helper()
	a, b, r := u.Estimates[0], u.Estimates[1], u.Range
	if r == nil {
		t.Fatalf("no range of %+v and %+v", a, b)
	}
	want := record.Range{Lo: r.Lo, Hi: r.Hi, Margin: r.Margin, Blocks: r.Blocks, Rejected: b.Rejected, Stale: r.Stale}
	if b.Rejected {
		if b.Accuracy != nil || b.Lo != nil || b.Hi != nil || b.Miss != nil {
			t.Errorf("a refuted estimate has numbers: %+v", b)
		}
	} else {
		want.Lo, want.Hi = max(0, min(*a.Lo, *b.Lo)-r.Margin), min(1, max(*a.Hi, *b.Hi)+r.Margin)
	}
	want.Known = want.Hi-want.Lo <= unlabelled.KnownWidth && r.Blocks >= unlabelled.LeastPast && !r.Rejected && !r.Stale
	if *r != want || r.Blocks == 0 && r.Margin != 0 {
		t.Errorf("range %+v of %+v and %+v, want %+v", *r, a, b, want)
	}
}

// TestRangeOfOtherLabels: half of one class's rows are labelled as another from a moment on. The newest blocks of
// labels lie outside what the estimates said, so later ranges are stale; without the change none is.
func TestRangeOfOtherLabels(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	calm := episode(109, nil, 12_000, 1)
	for _, changed := range []bool{false, true} {
		rows := episode(110, calm, 10_000, 1)
		for i := range rows[len(calm):] {
			if r := &rows[len(calm)+i]; changed && r.Label == 0 && i%2 == 0 {
				r.Label = 1
			}
		}
		change, known := rows[len(calm)].TS, rows[len(calm)+5000].TS // ten blocks
		s := alarmSetup(nil)
		s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 5000, Alpha: .001}
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
		before, after := 0, 0
		for _, snap := range w.Finals() {
			u := snap.Unlabelled
			if u == nil || u.Range == nil || snap.Labelled < 500 {
				continue
			}
			want := false
			switch {
			case snap.Window.End.UnixNano() <= change:
				before++
			case snap.Window.Start.UnixNano() > known:
				after, want = after+1, changed
			default:
				continue
			}
			if u.Range.Stale != want || want && u.Range.Known {
				t.Errorf("labels changed %v: window from %s: range %+v", changed, snap.Window.Start, *u.Range)
			}
		}
		if before < 5 || after < 5 {
			t.Errorf("%d windows before, %d after", before, after)
		}
	}
}

// TestEstimateUsesCalibratorInForce: for an overconfident model with its temperature in force, the confidence-based
// estimate gives the accuracy, and the ECE of the raw confidences, that the labels show later.
func TestEstimateUsesCalibratorInForce(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1000, Alpha: .001}
	w := newWorld(t, s, worldtest.Stream(t, episode(103, nil, 6000, 2), 2, 50), 1).run(worldtest.AnyOrder)
	checked := 0
	for _, snap := range w.Finals() {
		if snap.InForce == nil || snap.InForce.EffectiveFrom.After(snap.Window.Start) || snap.Labelled < 500 {
			continue
		}
		e := snap.Unlabelled.Estimates[0]
		checked++
		if math.Abs(e.Miss.Z) > 4 || e.ECE == nil || *e.ECE < .05 || math.Abs(*e.ECE-*snap.Raw.ECE) > .06 {
			t.Errorf("window from %s: %+v, miss %+v; accuracy %v, ECE %v", snap.Window.Start, e, e.Miss,
				*snap.Raw.Accuracy, *snap.Raw.ECE)
		}
	}
	if checked == 0 {
		t.Error("no window with a calibrator in force")
	}
}

// TestEstimateAfterChange: a model becomes overconfident, and a calibrator answers. The estimate of later windows is by
// the rows since the change, not by those of before it; of windows in which the confidences had both maps there is
// none.
func TestEstimateAfterChange(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1000, Alpha: .001}
	rows := episode(107, episode(105, nil, 6000, 1), 6000, 3)
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	of, mixed, since := 0, 0, record.Time{}
	for _, snap := range w.Finals() {
		if snap.InForce == nil || snap.Unlabelled == nil {
			continue
		}
		if since.IsZero() {
			since = snap.InForce.EffectiveFrom
		}
		e := snap.Unlabelled.Estimates
		based := len(e) > 0 && e[0].Method == "confidence-based"
		switch start := snap.Window.Start; {
		case since.After(start) && snap.Window.End.After(since):
			mixed++
			if based || snap.Unlabelled.Range != nil {
				t.Errorf("window from %s with a calibrator since %s: estimates %+v", snap.Window.Start, since, e)
			}
		case based && !snap.InForce.EffectiveFrom.After(start) && snap.Labelled > 500:
			of++
			if math.Abs(e[0].Miss.Difference) > .03 {
				t.Errorf("window from %s: %+v, missed by %+v", snap.Window.Start, e[0], e[0].Miss)
			}
		}
	}
	if of == 0 || mixed == 0 {
		t.Errorf("%d windows after the calibrator, %d with both maps", of, mixed)
	}
}

// TestMissOfSelectedLabels: only rows above a score get labels, which are less often right than the others. While the
// model is calibrated its estimate, which is of all predictions, has not failed; once it no longer is, it has.
func TestMissOfSelectedLabels(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const calm, all = 24_000, 36_000
	rng := rand.New(rand.NewPCG(111, 1))
	rows := batchtest.Rows(111, batchtest.Options{N: all, K: 2, Step: second / 40, MaxLag: 5 * second})
	for i := range rows {
		r, z := &rows[i], -1.5+2*rng.NormFloat64()
		true1 := z
		if i >= calm {
			true1 = .4 * z
		}
		r.Scores, r.Label = []float32{0, float32(z)}, 0
		switch score := 1 / (1 + math.Exp(-z)); {
		case score < .3:
			r.Label = -1
		case rng.Float64() < 1/(1+math.Exp(-true1)):
			r.Label = 1
		}
	}
	s := alarmSetup(nil)
	s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1500, Alpha: .001}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	var before, after int
	var squares float64
	for _, snap := range w.Finals() {
		if snap.Unlabelled == nil || snap.Predictions < 2000 {
			continue
		}
		e := snap.Unlabelled.Estimates[0]
		if e.Miss == nil || e.Miss.Labelled != snap.Labelled || snap.Labelled > snap.Predictions/2 {
			t.Fatalf("window from %s: estimate %+v, %d of %d labelled", snap.Window.Start, e, snap.Labelled,
				snap.Predictions)
		}
		switch change := rows[calm].TS; {
		case snap.Window.End.UnixNano() <= change:
			before++
			squares += e.Miss.Z * e.Miss.Z
			if math.Abs(e.Miss.Z) > 3 || *e.Accuracy-*snap.Raw.Accuracy < .05 {
				t.Errorf("window from %s: estimate %v, labelled rows %v, miss %+v", snap.Window.Start, *e.Accuracy,
					*snap.Raw.Accuracy, *e.Miss)
			}
		case snap.Window.Start.UnixNano() >= change:
			if after++; e.Miss.Z < 3 {
				t.Errorf("window from %s after the change: miss %+v", snap.Window.Start, *e.Miss)
			}
		}
	}
	if before < 10 || after < 5 || squares/float64(before) < .2 { // sliding windows share rows
		t.Errorf("%d windows before, with misses of %v squared standard errors, %d after", before,
			squares/float64(before), after)
	}
}

// distances converts distances to their record.
func distances(d unlabelled.Distances) record.Distances {
	one := func(d unlabelled.Distance) record.Distance {
		return record.Distance{Value: d.Value, Null: d.Null, Threshold: d.Threshold, P: d.P}
	}
	return record.Distances{KS: one(d.KS), Wasserstein: one(d.Wasserstein), PSI: one(d.PSI),
		JensenShannon: one(d.JensenShannon), Bins: d.Bins}
}
