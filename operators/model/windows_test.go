package model

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// fixedPoint bounds the effect on a mean of rounding every row to multiples of 2^-32. It also covers the square root of
// the L2 metrics, whose gaps are far from 0 in these rows.
const fixedPoint = 1e-8

// aurcCells bounds the error of the AURC of the grid: rows within a cell of 1/3600 share their mean weight.
const aurcCells = 2e-3

// TestWindowsEqualTheRowsMetrics compares every final window with the metrics of the rows that belong to it.
func TestWindowsEqualTheRowsMetrics(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(11, batchtest.Options{N: 1500, MaxLag: 45 * second, Unlabelled: .15, Sharpness: 1.7,
		Regions: 2})
	tail := batchtest.Rows(12, batchtest.Options{N: 30, Start: batchtest.Start + 1000*second, Step: second, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, append(rows, tail...), 3, 20), 1).run(worldtest.AnyOrder)
	n := map[string]int{}
	for _, snap := range w.Snapshots() {
		if snap.Window.Final || snap.Window.Name == "rows" {
			n[snap.Window.Name]++
			checkWindow(t, &snap, rows, tail)
		}
	}
	for name, atLeast := range map[string]int{"tumbling": 9, "sliding": 27, "rows": 30, "rows-tumbling": 8} {
		if n[name] < atLeast {
			t.Errorf("%d windows %s compared, want at least %d", n[name], name, atLeast)
		}
	}
}

// TestSlicesAreShownEachMinute: of a slice the latest windows are published after its first pane and then once a
// minute, also where its last rows came in between; those of a model version at every pane.
func TestSlicesAreShownEachMinute(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(15, batchtest.Options{N: 250, Step: second, Regions: 3})
	others := batchtest.Rows(16, batchtest.Options{N: 200, Start: batchtest.Start + 250*second, Step: second})
	s := defaultSetup()
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, append(rows, others...), 1, 20), 1).run(worldtest.AnyOrder)
	shown := map[string][]record.Snapshot{}
	for _, snap := range w.Snapshots() {
		if !snap.Window.Final && snap.Window.Name == "rows" {
			shown[snap.Slice] = append(shown[snap.Slice], snap)
		}
	}
	if n := len(shown[""]); n < 40 {
		t.Errorf("the version is shown %d times, want 40 or more", n)
	}
	delete(shown, "")
	delete(shown, "region=") // of the others
	moments := map[int64]bool{}
	for slice, of := range shown {
		if len(of) < 4 || len(of) > 7 {
			t.Errorf("%s is shown %d times, want 4 to 7", slice, len(of))
		}
		for i := 2; i < len(of); i++ {
			if d := of[i].At.UnixNano() - of[i-1].At.UnixNano(); d%int64(time.Minute) != 0 {
				t.Errorf("%s is shown at %v and at %v", slice, of[i-1].At, of[i].At)
			}
		}
		last := of[len(of)-1]
		moments[last.At.UnixNano()%int64(time.Minute)] = true
		for _, r := range rows {
			if end := last.Window.End.UnixNano(); "region="+r.Region == slice && end <= r.LabelTS {
				t.Errorf("%s: the last snapshot ends at %d, before a label at %d", slice, end, r.LabelTS)
			}
		}
	}
	if len(shown) != 3 || len(moments) < 2 {
		t.Errorf("%d slices are shown at %d moments of a minute, want 3 at 2 or more", len(shown), len(moments))
	}
}

// TestEndedWindowsAreShownLess: a window whose labels come for long after its end is published 1, 2, 4, 8 … slides
// later, and as final.
func TestEndedWindowsAreShownLess(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(17, batchtest.Options{N: 600, Step: second, MaxLag: 45 * second})
	s := defaultSetup()
	const slide = 10 * second
	s.model.Windows = []window.Config{{Name: "w", Kind: window.KindTime, Size: time.Duration(slide)}}
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 20), 1).run(worldtest.AnyOrder)
	ages, final := map[record.Time][]int64{}, map[record.Time]bool{}
	for _, snap := range w.Snapshots() {
		if final[snap.Window.End] = snap.Window.Final; !snap.Window.Final {
			ages[snap.Window.End] = append(ages[snap.Window.End], (snap.At.UnixNano()-snap.Window.End.UnixNano())/slide)
		}
	}
	whole := 0
	for end, of := range ages {
		if slices.Equal(of, []int64{0, 1, 2, 4}) {
			whole++
		} else if slices.ContainsFunc(of, func(age int64) bool { return age&(age-1) != 0 }) {
			t.Errorf("the window that ends at %v is shown %v slides after", end, of)
		}
	}
	maps.DeleteFunc(final, func(_ record.Time, last bool) bool { return !last })
	if finals := len(final); whole < 30 || finals < 50 {
		t.Errorf("of %d windows %d are shown after 0, 1, 2 and 4 slides, want 30; %d are final, want 50", len(ages),
			whole, finals)
	}
}

// TestWindowOfManyBlocks compares a row window of panes of a few rows, whose sums are of runs of blocks, with the
// metrics of the rows that belong to it: as it runs, and where the task loses its memory.
func TestWindowOfManyBlocks(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(13, batchtest.Options{N: 800, Step: 1200 * second / 1000, MaxLag: 45 * second,
		Unlabelled: .1, Sharpness: 1.7})
	s := defaultSetup()
	s.model.Windows = slices.DeleteFunc(worldtest.Windows(), func(c window.Config) bool { return c.Name != "rows" })
	whole := newWorld(t, s, worldtest.Stream(t, rows, 1, 20), 1).run(worldtest.AnyOrder)
	again := newWorld(t, s, worldtest.Stream(t, rows, 1, 20), 1)
	again.Save, again.Crash = .2, .1
	again.run(worldtest.AnyOrder)
	again.compare(whole)
	n := 0
	for _, snap := range whole.Snapshots() {
		if snap.Labelled >= 300 {
			n++
			checkWindow(t, &snap, rows, nil)
		}
	}
	if n < 40 {
		t.Errorf("%d windows compared, want 40 at least", n)
	}
}

func checkWindow(t *testing.T, s *record.Snapshot, rows, tail []batchtest.Row) {
	t.Helper()
	start, end, at := s.Window.Start.UnixNano(), s.Window.End.UnixNano(), s.At.UnixNano()
	var in []batchtest.Row
	predictions := int64(0)
	for _, r := range append(slices.Clone(rows), tail...) {
		if s.Slice != "" && s.Slice != "region="+r.Region {
			continue
		}
		if s.Window.Kind == "time" {
			if r.TS >= start && r.TS < end {
				predictions++
				if r.Label >= 0 && r.LabelTS < at {
					in = append(in, r)
				}
			}
		} else if r.Label >= 0 && r.LabelTS >= start && r.LabelTS < end {
			in = append(in, r)
		}
	}
	name := s.Window.Name + " " + s.Slice + " " + s.Window.Start.String()
	if s.Window.Kind == "time" && s.Predictions != predictions || s.Labelled != int64(len(in)) ||
		s.Raw.N != s.Labelled {
		t.Errorf("%s: %d predictions, %d labelled, want %d, %d", name, s.Predictions, s.Labelled, predictions, len(in))
		return
	}
	if s.Window.Kind == "rows" && s.Labelled < 300 && s.Window.Final {
		t.Errorf("%s: final with %d rows, want 300 or more", name, s.Labelled)
	}
	if s.Window.Name == "rows" { // no shorter run of whole panes has enough rows
		first := int64(0)
		for _, r := range in {
			if pipeline.PaneIndex(r.LabelTS, 10*second) == pipeline.PaneIndex(start, 10*second) {
				first++
			}
		}
		if s.Labelled-first >= 300 {
			t.Errorf("%s: %d rows without the first pane's %d are enough already", name, s.Labelled, first)
		}
	}
	if len(in) == 0 {
		return
	}
	ref := metric.Rows{K: 4}
	var lag float64
	for _, r := range in {
		ref.F32 = append(ref.F32, r.Scores...)
		ref.Labels = append(ref.Labels, r.Label)
		lag += float64(r.LabelTS-r.TS) / 1e9 / float64(len(in))
	}
	want, err := metric.Evaluate(ref, metric.Options{Resamples: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &s.Raw
	for _, c := range []struct {
		name      string
		got       *float64
		want, tol float64
	}{{"accuracy", m.Accuracy, want.Accuracy, fixedPoint}, {"nll", m.NLL, want.NLL, fixedPoint}, {"brier", m.Brier,
		want.Brier, fixedPoint},
		{"ece", m.ECE, want.ECE, fixedPoint}, {"ece_l2", m.ECEL2, want.ECEL2, fixedPoint}, {"mce", m.MCE, want.MCE,
			fixedPoint}, {"cwece", m.CWECE, want.CWECE, fixedPoint},
		{"cwece_l2", m.CWECEL2, want.CWECEL2, fixedPoint}, {"sbece_bin", m.SBECEBin, want.SBECEBin,
			fixedPoint}, {"sbece_lb", m.SBECELB, want.SBECELB, fixedPoint},
		{"aurc", m.AURC, want.AURC, aurcCells}, {"lag", &s.Lag.Mean, lag, 1e-6}} {
		if c.got == nil || math.Abs(*c.got-c.want) > c.tol {
			t.Errorf("%s: %s = %v, want %v", name, c.name, deref(c.got), c.want)
		}
	}
}

func deref(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// TestCalibratedIsScoredAfterItsFit recomputes the scores of the calibrator in force on the rows after its fit.
func TestCalibratedIsScoredAfterItsFit(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(13, batchtest.Options{N: 6000, MaxLag: 5 * second, Sharpness: 2.5})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.Period, s.model.Refit.OnAlarm = 200*time.Second, false
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	cals := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
	if len(cals) == 0 {
		t.Fatal("overconfident rows, and no calibrator was published")
	}
	c := cals[0]
	if !c.Published || c.Revision != 1 || c.EffectiveFrom != c.DecidedAt || c.Evidence.NLLDiff >= 0 ||
		math.Abs(c.Evidence.Temperature-2.5) > .4 {
		t.Errorf("first calibrator %+v: want a published temperature near 2.5 in force from its decision", c)
	}
	from := c.EffectiveFrom.UnixNano()
	snaps := w.Snapshots()
	last := snaps[len(snaps)-1]
	newest, n := cals[len(cals)-1].EffectiveFrom.UnixNano(), int64(0)
	for _, r := range rows {
		if r.TS >= newest && r.LabelTS < last.At.UnixNano() {
			n++
		}
	}
	if last.InForce == nil || last.InForce.Raw.N != n || last.InForce.Calibrated.N != n || n == 0 {
		t.Errorf("in force %+v: want %d rows predicted since %s", last.InForce, n, pipeline.Format(newest))
	}
	windows := map[bool]int{}
	for _, snap := range snaps {
		if snap.Window.Name != "tumbling" || !snap.Window.Final {
			continue
		}
		same := *snap.Raw.ECE == *snap.Calibrated.ECE
		before := snap.Window.End.UnixNano() <= from
		if windows[before]++; before != same || snap.Calibrated.N == 0 {
			t.Errorf("window %s: raw ECE %v, calibrated %v, in force from %s", snap.Window.Start, *snap.Raw.ECE,
				*snap.Calibrated.ECE, c.EffectiveFrom)
		}
		if snap.Window.Start.UnixNano() >= from && *snap.Calibrated.ECE > *snap.Raw.ECE/2 {
			t.Errorf("window %s: calibrated ECE %v is not below half of raw %v", snap.Window.Start,
				*snap.Calibrated.ECE, *snap.Raw.ECE)
		}
	}
	if windows[true] == 0 || windows[false] < 2 {
		t.Errorf("%d windows before the calibrator, %d after or about its start: want some of each", windows[true],
			windows[false])
	}
	slices.SortFunc(cals, func(a, b record.Calibrator) int { return cmp.Compare(a.Revision, b.Revision) })
	for i, c := range cals {
		if c.Revision != i+1 {
			t.Errorf("revision %d at place %d", c.Revision, i)
		}
	}
}
