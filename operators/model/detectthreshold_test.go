package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/operators/model/rule"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

func threshold(measure string, fire, resolve float64) RuleSpec {
	return RuleSpec{rule.Config{Name: measure, Kind: kindThreshold, Measure: measure, Signal: stage.SignalRaw, Severity: "warning", Rows: 800, MinRows: 400, Fire: fire, Clear: resolve,
		For: 10 * time.Second, Side: map[bool]string{true: "below"}[fire < resolve], Age: 20 * time.Second}}
}

func thresholds() []RuleSpec {
	return []RuleSpec{threshold(measureAccuracy, .62, .66), threshold(measureNLL, .9, .85), threshold(measureECE, .08, .05), threshold(measureSmECE, .08, .06),
		threshold(measureConfidence, .85, .8), threshold(measureCoverage, .7, .8)}
}

// changing is 2,500 rows as they should be, 1,500 after a change, and 2,500 as before.
func changing(change func(*batchtest.Row, int)) []batchtest.Row {
	rows := episode(123, episode(122, episode(121, nil, 2500, 1), 1500, 1), 2500, 1)
	for i := 2500; i < 4000; i++ {
		change(&rows[i], i)
	}
	return rows
}

// TestThresholdRules: which rules fire on which change, none before it, and that all are resolved after it.
func TestThresholdRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*batchtest.Row, int)
		want   []string
	}{
		{"overconfident", func(r *batchtest.Row, _ int) { r.Scores = scaled(r.Scores, 3) }, []string{"confidence", "ece", "nll", "smece"}},
		{"wrong", func(r *batchtest.Row, i int) {
			if i%4 == 0 {
				r.Label = (r.Label + 1) % 4
			}
		}, []string{"accuracy", "ece", "nll", "smece"}},
		{"unlabelled", func(r *batchtest.Row, i int) {
			if i%2 == 0 {
				r.Label = -1
			}
		}, []string{"coverage"}},
		{"late", func(r *batchtest.Row, i int) {
			if i%2 == 0 {
				r.LabelTS = r.TS + 40*second // they come, but after Age
			}
		}, []string{"coverage"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows, s := changing(c.change), alarmSetup(nil)
			s.model.Rules = thresholds()
			w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
			var fired []string
			last := map[string]string{}
			for _, a := range w.alerts() {
				last[a.Rule] = a.State
				if a.State != stage.Resolved && nanos(t, a.At) <= rows[2500].TS {
					t.Errorf("%s is %s at %s, before the change", a.Rule, a.State, a.At)
				}
				if a.State == stage.Firing {
					fired = append(fired, a.Rule)
					checkThresholdAlert(t, &a)
				}
			}
			slices.Sort(fired)
			if fired = slices.Compact(fired); fmt.Sprint(fired) != fmt.Sprint(c.want) {
				t.Errorf("%v fire, want %v", fired, c.want)
			}
			for rule, state := range last {
				if state != stage.Resolved {
					t.Errorf("%s is %s at the end", rule, state)
				}
			}
		})
	}
}

func checkThresholdAlert(t *testing.T, a *record.Alert) {
	t.Helper()
	below := a.Rule == measureAccuracy || a.Rule == measureCoverage
	side := "fires above"
	if below {
		side = "fires below"
	}
	if a.Kind != kindThreshold || below != (a.Value < a.Threshold) || a.ValueLo == nil || *a.ValueLo > a.Value || *a.ValueHi < a.Value || !strings.Contains(a.Message, side) {
		t.Errorf("alert %+v does not add up", a)
	}
}

// TestThresholdOfInterval: with Interval a rule whose value is beyond its bound by less than noise stays silent, and fires where the
// whole interval is beyond.
func TestThresholdOfInterval(t *testing.T) {
	t.Parallel()
	rows := changing(func(r *batchtest.Row, i int) {
		if i%4 == 0 {
			r.Label = (r.Label + 1) % 4
		}
	})
	s := alarmSetup(nil)
	s.model.Rules = thresholds()[:1]
	w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
	var at *record.Alert
	for _, a := range w.alerts() {
		if a.State == stage.Firing {
			at = &a
			break
		}
	}
	if at == nil {
		t.Fatal("accuracy fell, and nothing fires")
	}
	near := (at.Value + *at.ValueHi) / 2 // value is below it, the interval is not
	first := map[bool]string{}
	for _, sure := range []bool{false, true} {
		s.model.Rules = []RuleSpec{threshold(measureAccuracy, near, 1)}
		s.model.Rules[0].Interval = sure
		for _, a := range newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder).alerts() {
			if a.State == stage.Firing && first[sure] == "" {
				first[sure] = a.At
				if sure && *a.ValueHi >= near {
					t.Errorf("fires at %v with an interval up to %v, bound %v", a.Value, *a.ValueHi, near)
				}
			}
		}
	}
	if first[true] == "" || first[false] == "" || nanos(t, first[true]) <= nanos(t, first[false]) {
		t.Errorf("bound %v: fires at %q by its value, at %q by its interval; want the second, later", near, first[false], first[true])
	}
	spec := threshold(measureAccuracy, .8, .9)
	spec.Interval = true
	bins := make([]float64, spec.labelledSize(15))
	for _, c := range []struct {
		n    float64
		want bool
	}{{100, false}, {1000, true}} { // 76 %: the intervals are 67-83 % and 73-79 %
		copy(bins[momentsSize:], []float64{c.n, c.n, .8 * c.n, .76 * c.n})
		j, ok, err := spec.threshold(sumBlock{rows: int64(c.n), sums: bins}, 15, reference.Options{Resamples: 20})
		if err != nil || !ok || j.significant != c.want || math.Abs(j.value-.76) > 1e-12 {
			t.Errorf("%v rows: %+v, %v, %v; want significant: %v", c.n, j, ok, err, c.want)
		}
	}
}

// TestThresholdIntervalIsThatOfReferences holds values and intervals against those of package reference: the difference to a window that
// is known exactly, and has no error, is the value itself.
func TestThresholdIntervalIsThatOfReferences(t *testing.T) {
	t.Parallel()
	bins := rowBins(t, episode(131, nil, 1500, 1.8))
	exact := slices.Clone(bins)
	for i := range exact {
		exact[i].N *= 1e14
		exact[i].W *= 1e14
		exact[i].W2 *= 1e14
		exact[i].SumC *= 1e14
		exact[i].SumA = exact[i].SumC
	}
	nll := reference.Moments{W: 900, Sum: 700, Square: 1400}
	want, err := reference.Compare(reference.Window{Bins: exact, NLL: reference.Moments{W: 1e14}}, reference.Window{Bins: bins, NLL: nll}, reference.Options{Resamples: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		measure string
		want    reference.Change
	}{{measureECE, want.ECE}, {measureNLL, want.NLL}, {measureAccuracy, want.Accuracy}} {
		spec := threshold(c.measure, .5, .4)
		value, lo, hi, err := spec.measured(reference.Window{Bins: bins, NLL: nll}, reference.Options{Resamples: 20})
		ref := c.want.Reference
		if err != nil || math.Abs(value-c.want.Now) > 1e-9 || math.Abs(lo-c.want.Lo-ref) > 1e-5 || math.Abs(hi-c.want.Hi-ref) > 1e-5 {
			t.Errorf("%s: %v, %v to %v, %v; want %+v", c.measure, value, lo, hi, err, c.want)
		}
	}
	var conf, n float64
	for _, b := range bins {
		conf, n = conf+b.SumC, n+b.W
	}
	spec := threshold(measureConfidence, .5, .4)
	if value, lo, hi, _ := spec.measured(reference.Window{Cells: []metric.Bin{{N: 50, W: 50, SumC: 25}, {N: 50, W: 50, SumC: 45}}}, reference.Options{}); math.Abs(value-.7) > 1e-12 ||
		math.Abs(hi-lo-2*z95two*math.Sqrt((.04+1./(4*180*180))/99)) > 1e-12 {
		t.Errorf("confidence %v, %v to %v", value, lo, hi)
	}
}

// TestCoverageIsThatOfTheRows counts the rows themselves: of the predictions of whole slots that are old enough, those whose label came by then.
func TestCoverageIsThatOfTheRows(t *testing.T) {
	t.Parallel()
	const age, slots = 700 * second, 3 // 70 panes in slots of 3
	rows := batchtest.Rows(141, batchtest.Options{N: 6000, Step: second, MaxLag: 900 * second, Unlabelled: .1})
	s := alarmSetup(nil)
	s.join.Wait, s.model.FinalAfter = 2000*second, 2000*second
	spec := threshold(measureCoverage, .1, .2)
	spec.Age, spec.Rows = time.Duration(age), 1<<40 // all of them
	s.model.Rules = []RuleSpec{spec}
	w := newWorld(t, s, stream(t, rows, 1, 50), 1).run(anyOrder)
	m := w.model.models["m"]
	l := m.versions["v1"].keys[""].looks[0]
	_, cur, _ := l.windows(&spec)
	var seen, labelled float64
	for _, r := range rows {
		slot := pipeline.PaneIndex(pipeline.PaneIndex(r.TS, s.model.Pane), slots)
		due := (slot+1)*slots + 70 - 1
		if due >= m.next {
			continue
		}
		seen++
		if r.Label >= 0 && pipeline.PaneIndex(r.LabelTS, s.model.Pane) <= due {
			labelled++
		}
	}
	if spec.slot(s.model.Pane) != slots || len(l.coverage.slots) > maxSlots+1 || cur.sums[0] != seen || cur.sums[1] != labelled || labelled == 0 || labelled > .9*seen {
		t.Errorf("coverage %v in slots of %d, %d open; want %v of %v", cur.sums, spec.slot(s.model.Pane), len(l.coverage.slots), labelled, seen)
	}
}

// TestThresholdRulesSurvive: a task rebuilt from its checkpoint again and again ends as one that was left alone, and so does one of
// other shards and crashes.
func TestThresholdRulesSurvive(t *testing.T) {
	t.Parallel()
	rows := changing(func(r *batchtest.Row, i int) {
		r.Scores = scaled(r.Scores, 3)
		if i%3 == 0 {
			r.Label = -1
		}
	})
	s := alarmSetup(nil)
	s.slices, s.model.Rules = []string{"region"}, thresholds()
	for i := range s.model.Rules {
		s.model.Rules[i].Slices, s.model.Rules[i].MinRows = true, 100
	}
	w := newWorld(t, s, stream(t, rows, 2, 25), 1).run(anyOrder)
	if len(w.alerts()) < 8 {
		t.Fatalf("%d alerts to compare", len(w.alerts()))
	}
	newWorld(t, s, stream(t, rows, 3, 40), 5).run(anyOrder).compare(w)
	w.compareRestarts(t, w.restartsAfter(5))
}

// TestCoverageLeavesOutWhatIsLate: predictions of a slot that was judged are in no slot any more.
func TestCoverageLeavesOutWhatIsLate(t *testing.T) {
	t.Parallel()
	cfg := defaultSetup().model
	spec := threshold(measureCoverage, .1, .2) // slots of one pane, due two panes after it
	var c coverage
	for _, x := range []struct{ predictionPane, pane, want int64 }{{5, 5, 0}, {6, 7, 1}, {5, 8, 1}, {5, 9, 0}, {9, 9, 0}, {20, 20, 1}} {
		set, err := (&stage.Env{Acc: cfg.Acc}).NewSums(4)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := kernel.Logits([]float64{2, 1, 0, 0}, make([]float64, 4))
		if err := set.Predict(r, 1); err != nil {
			t.Fatal(err)
		}
		sums := c.add(&spec, &stage.Pane{Index: x.pane, Cells: []stage.Cell{{PredictionPane: x.predictionPane, Set: set}}}, cfg.Pane)
		if sums != [coverageSize]float64{float64(x.want), 0} {
			t.Errorf("label pane %d with a prediction of pane %d: %v judged, want %d", x.pane, x.predictionPane, sums, x.want)
		}
	}
}
