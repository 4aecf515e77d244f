package model

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/operators/model/rule"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
)

// comparing are rules of all kinds that compare, against a rolling reference where mode is that.
func comparing(mode string) []RuleSpec {
	ref := refPinned
	if mode == refRolling {
		ref = refRolling
	}
	var out []RuleSpec
	for kind, measures := range map[string][]string{
		kindReference: {measureECE, measureSmECE, measureAccuracy, measureNLL, measureCurve},
		kindDistance:  {measureKS, measureWasserstein, measurePSI, measureJS},
		kindEstimate:  {measureAccuracy, measureECE, measureMiss},
	} {
		for i, m := range measures {
			out = append(out, RuleSpec{rule.Config{Name: kind + "-" + m, Kind: kind, Measure: m, Signal: []string{stage.SignalRaw, stage.SignalCalibrated}[i%2], Score: csfNames[i%3], Severity: "warning",
				Rows: 800, MinRows: 400, Fire: .04, Clear: .03, For: 10 * time.Second, Reference: ref, ReferenceRows: 1000, Alpha: 1e-4, Slices: m == measureKS || m == measureCurve}})
		}
	}
	slices.SortFunc(out, func(a, b RuleSpec) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// TestRulesThatCompare: which rules fire on which change, and that none does before it.
func TestRulesThatCompare(t *testing.T) {
	t.Parallel()
	// The model becomes overconfident; or unsure and right as often; or is wrong more often at the same confidence.
	for _, c := range []struct {
		name  string
		after func([]batchtest.Row)
		want  []string
	}{
		{"overconfident", func(rows []batchtest.Row) {
			for i := range rows {
				rows[i].Scores = scaled(rows[i].Scores, 3)
			}
		}, []string{"distance-js", "distance-ks", "distance-psi", "distance-wasserstein", "estimate-miss", "reference-curve", "reference-ece", "reference-nll", "reference-smece"}},
		{"unsure", func(rows []batchtest.Row) {
			for i := range rows {
				rows[i].Scores = scaled(rows[i].Scores, .5)
			}
		}, []string{"distance-js", "distance-ks", "distance-psi", "distance-wasserstein", "estimate-accuracy", "estimate-miss", "reference-curve", "reference-ece", "reference-nll", "reference-smece"}},
		{"wrong", func(rows []batchtest.Row) {
			for i := range rows {
				if i%5 == 0 {
					rows[i].Label = (rows[i].Label + 1) % 4
				}
			}
		}, []string{"estimate-miss", "reference-accuracy", "reference-curve", "reference-ece", "reference-nll", "reference-smece"}},
	} {
		for _, mode := range []string{refPinned, refRolling} {
			t.Run(c.name+" "+mode, func(t *testing.T) {
				t.Parallel()
				rows := episode(111, episode(112, nil, 3500, 1), 1500, 1)
				c.after(rows[3500:])
				s := alarmSetup(nil)
				s.model.Unlabelled = &UnlabelledSpec{Reference: refPinned, ReferenceRows: 1000, Alpha: .001}
				s.model.Rules = comparing(mode)
				for i := range s.model.Rules {
					s.model.Rules[i].Signal = stage.SignalRaw
				}
				w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
				var fired []string
				for _, a := range w.alerts() {
					// Intervals are of 95 % and for one look: noise may make a rule pending.
					if a.State == stage.Firing && nanos(t, a.At) <= rows[3500].TS {
						t.Errorf("%s fires at %s, before the change", a.Rule, a.At)
					}
					if a.State == stage.Firing && !slices.Contains(fired, a.Rule) {
						fired = append(fired, a.Rule)
						if a.Value <= .04 || a.Message == "" || a.ValueLo != nil && (*a.ValueLo > a.Value || *a.ValueHi < a.Value) {
							t.Errorf("alert %+v does not add up", a)
						}
					}
				}
				slices.Sort(fired)
				if fmt.Sprint(fired) != fmt.Sprint(c.want) {
					t.Errorf("%v fire, want %v", fired, c.want)
				}
			})
		}
	}
}

// TestReferenceRuleIsThatOfTheRows holds the windows of a rule against those of the rows themselves, pinned and rolling.
func TestReferenceRuleIsThatOfTheRows(t *testing.T) {
	t.Parallel()
	rows := episode(113, nil, 4000, 1.3)
	for _, mode := range []string{refPinned, refRolling} {
		spec := RuleSpec{rule.Config{Name: "r", Kind: kindReference, Measure: measureAccuracy, Signal: stage.SignalRaw, Rows: 700, MinRows: 1, Fire: 1, Reference: mode, ReferenceRows: 900}}
		s := alarmSetup(nil)
		s.model.Rules = []RuleSpec{spec}
		w := newWorld(t, s, stream(t, rows, 1, 50), 1).run(anyOrder)
		k := w.model.models["m"].versions["v1"].keys[""]
		ref, cur, ok := k.looks[0].windows(&spec)
		if !ok || cur.rows < 700 || cur.rows >= 700+2*(700/blocksOf+150) || ref.rows < 900 {
			t.Fatalf("%s: windows of %d and %d rows", mode, ref.rows, cur.rows)
		}
		inOrder := slices.Clone(rows)
		slices.SortStableFunc(inOrder, func(a, b batchtest.Row) int {
			x, y := pipeline.PaneIndex(a.LabelTS, s.model.Pane), pipeline.PaneIndex(b.LabelTS, s.model.Pane)
			return int(x - y)
		})
		n := len(inOrder)
		latest := inOrder[n-int(cur.rows):]
		before := inOrder[:ref.rows]
		if mode == refRolling {
			before = inOrder[n-int(cur.rows)-int(ref.rows) : n-int(cur.rows)]
		}
		got, ok, err := spec.compare(ref, cur, 15, reference.Options{Resamples: 20})
		if err != nil || !ok {
			t.Fatal(err)
		}
		want, err := reference.Compare(reference.Window{Bins: rowBins(t, before)}, reference.Window{Bins: rowBins(t, latest)}, reference.Options{Resamples: 20})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.value+want.Accuracy.Difference) > 1e-9 || math.Abs(*got.lo+want.Accuracy.Hi) > 1e-9 {
			t.Errorf("%s: fall of accuracy %v (from %v), want %v", mode, got.value, *got.lo, want.Accuracy)
		}
	}
}

func rowBins(t *testing.T, rows []batchtest.Row) []metric.Bin {
	bins := make([]metric.Bin, 15)
	for _, p := range paneSums(t, rows, 1, 15, func(batchtest.Row) int64 { return 0 }) {
		for j, b := range p {
			bins[j] = metric.Bin{N: int64(b.N()), W: b.N(), SumC: b.C0 + b.C1, SumA: b.N1}
		}
	}
	return bins
}
