package rule

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/stage/stagetest"
	"github.com/plumbline/plumbline/pipeline/record"
)

const second = int64(time.Second)

func threshold0(measure string, fire, resolve float64) Config {
	return Config{Name: measure, Kind: Threshold, Measure: measure, Signal: stage.SignalRaw, Severity: "warning",
		Rows: 50,
		Fire: fire, Clear: resolve, For: 10 * time.Second, Side: side(fire < resolve), Age: 20 * time.Second}
}

func side(below bool) string {
	if below {
		return "below"
	}
	return "above"
}

func testContext(cfg Config) *context {
	env := &stage.Env{Pane: 10 * second, Bins: 15, Resamples: 20, Acc: acc.Config{Bins: 15, SoftBins: 15,
		SoftTemperature: .01, SampleSeed: 7}}
	return &context{env, &cfg, &stage.Key{Version: &stage.Version{Model: "m", Name: "v", K: 4}, K: 4}}
}

func newThresholdOf(t *testing.T, cfg Config) threshold {
	t.Helper()
	return newThreshold(testContext(cfg)).(threshold)
}

// TestThresholdByInterval: with Interval a value counts only if its whole interval is beyond the bound.
func TestThresholdByInterval(t *testing.T) {
	r := newThresholdOf(t, threshold0(Accuracy, .8, .9))
	r.cfg.Interval = true
	bins := make([]float64, r.size())
	for _, c := range []struct {
		n    float64
		want bool
	}{{100, false}, {1000, true}} { // 76 %: the intervals are 67-83 % and 73-79 %
		copy(bins[momentsSize:], []float64{c.n, c.n, .8 * c.n, .76 * c.n})
		r.blocks = []block{{rows: int64(c.n), sums: bins}}
		j, ok, err := r.Evaluate(0)
		if err != nil || !ok || j.Significant != c.want || math.Abs(j.Value-.76) > 1e-12 {
			t.Errorf("%v rows: %+v, %v, %v; want significant: %v", c.n, j, ok, err, c.want)
		}
	}
}

// TestThresholdIntervalEqualsReference compares values and intervals with those of package reference. The difference
// to a window that is known exactly and has no error is the value itself.
func TestThresholdIntervalEqualsReference(t *testing.T) {
	t.Parallel()
	bins := drawnBins()
	exact := slices.Clone(bins)
	for i := range exact {
		exact[i].N *= 1e14
		exact[i].W *= 1e14
		exact[i].W2 *= 1e14
		exact[i].SumC *= 1e14
		exact[i].SumA = exact[i].SumC
	}
	nll := reference.Moments{W: 900, Sum: 700, Square: 1400}
	want, err := reference.Compare(reference.Window{Bins: exact, NLL: reference.Moments{W: 1e14}},
		reference.Window{Bins: bins, NLL: nll})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		measure string
		want    reference.Change
	}{{ECE, want.ECE}, {NLL, want.NLL}, {Accuracy, want.Accuracy}} {
		spec := threshold0(c.measure, .5, .4)
		value, lo, hi := spec.measured(reference.Window{Bins: bins, NLL: nll})
		ref := c.want.Reference
		if math.Abs(value-c.want.Now) > 1e-9 || math.Abs(lo-c.want.Lo-ref) > 1e-5 ||
			math.Abs(hi-c.want.Hi-ref) > 1e-5 {
			t.Errorf("%s: %v, %v to %v; want %+v", c.measure, value, lo, hi, c.want)
		}
	}
	var conf, n float64
	for _, b := range bins {
		conf, n = conf+b.SumC, n+b.W
	}
	spec := threshold0(Confidence, .5, .4)
	if value, lo, hi := spec.measured(reference.Window{Cells: []metric.Bin{{N: 50, W: 50, SumC: 25},
		{N: 50, W: 50, SumC: 45}}}); math.Abs(value-.7) > 1e-12 ||
		math.Abs(hi-lo-2*z95two*math.Sqrt((.04+1./(4*180*180))/99)) > 1e-12 {
		t.Errorf("confidence %v, %v to %v", value, lo, hi)
	}
}

// drawnBins returns bins of 1,500 rows of an overconfident model.
func drawnBins() []metric.Bin {
	rng, bins := rand.New(rand.NewPCG(1, 31)), make([]metric.Bin, 15)
	for range 1500 {
		c := .3 + .7*rng.Float64()
		b := &bins[metric.BinIndex(c, 15)]
		b.N, b.W, b.SumC = b.N+1, b.W+1, b.SumC+c
		if rng.Float64() < c-.1 {
			b.SumA++
		}
	}
	return bins
}

// TestCoverageOmitsLatePredictions: predictions of a completed slot no longer enter any slot.
func TestCoverageOmitsLatePredictions(t *testing.T) {
	t.Parallel()
	x0 := testContext(threshold0(Coverage, .1, .2)) // slots of one pane, due two panes after it
	c := newThreshold(x0).(*coverage)
	for _, x := range []struct{ predictionPane, pane, want int64 }{{5, 5, 0}, {6, 7, 1}, {5, 8, 1}, {5, 9, 0},
		{9, 9, 0}, {20, 20, 1}} {
		set, err := x0.env.NewSums(4)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := kernel.Logits([]float64{2, 1, 0, 0}, make([]float64, 4))
		if err := set.Predict(r, 1); err != nil {
			t.Fatal(err)
		}
		sums := c.count(&stage.Pane{Index: x.pane, Cells: []stage.Cell{{PredictionPane: x.predictionPane, Set: set}}})
		if sums != [coverageSize]float64{float64(x.want), 0} {
			t.Errorf("label pane %d with a prediction of pane %d: %v counted, want %d", x.pane, x.predictionPane, sums,
				x.want)
		}
	}
}

// TestCoverageEqualsRows counts the rows themselves: among the predictions of whole slots that are old enough,
// those whose label came in time.
func TestCoverageEqualsRows(t *testing.T) {
	testsize.Slow(t)
	const age, slots, pane = 700 * time.Second, 3, 10 * second // 70 panes in slots of 3
	cfg := threshold0(Coverage, .1, .2)
	cfg.Age, cfg.Rows = age, 1<<40 // all of them
	x := testContext(cfg)
	c := newThreshold(x).(*coverage)
	rng := rand.New(rand.NewPCG(1, 41))
	type row struct{ predicted, labelled int64 } // panes; labelled -1 = never
	panes := map[int64]map[int64][2]int{}        // label pane → prediction pane → predictions, labels
	add := func(at, predicted int64, i int) {
		if panes[at] == nil {
			panes[at] = map[int64][2]int{}
		}
		n := panes[at][predicted]
		n[i]++
		panes[at][predicted] = n
	}
	var rows []row
	for i := range 6000 {
		r := row{int64(i) / 10, -1}
		if rng.Float64() > .1 {
			r.labelled = r.predicted + rng.Int64N(90)
			add(r.labelled, r.predicted, 1)
		}
		add(r.predicted, r.predicted, 0)
		rows = append(rows, r)
	}
	const last = 650
	for at := range int64(last) {
		in := &stage.Pane{Index: at, End: (at + 1) * pane}
		for _, p := range slices.Sorted(maps.Keys(panes[at])) {
			in.Cells = append(in.Cells, stage.Cell{PredictionPane: p, Set: counted(t, x.env, panes[at][p])})
		}
		if _, err := c.Observe(in); err != nil {
			t.Fatal(err)
		}
	}
	_, cur, _ := c.windows(x.cfg)
	var seen, labelled float64
	for _, r := range rows {
		due := (r.predicted/slots+1)*slots + 70 - 1
		if due >= last {
			continue
		}
		seen++
		if r.labelled >= 0 && r.labelled <= due {
			labelled++
		}
	}
	if c.age().SlotPanes() != slots || c.waiting.Len() > 33 || cur.sums[0] != seen || cur.sums[1] != labelled ||
		labelled == 0 || labelled > .9*seen {
		t.Errorf("coverage %v in slots of %d, %d open; want %v of %v", cur.sums, c.age().SlotPanes(), c.waiting.Len(),
			labelled, seen)
	}
}

// counted returns a set with the given numbers of predictions and labelled rows.
func counted(t *testing.T, env *stage.Env, n [2]int) *acc.Set {
	t.Helper()
	set, err := env.NewSums(4)
	if err != nil {
		t.Fatal(err)
	}
	z, p := []float64{2, 1, 0, 0}, make([]float64, 4)
	r, _ := kernel.Logits(z, p)
	for range n[0] {
		if err := set.Predict(r, 1); err != nil {
			t.Fatal(err)
		}
	}
	for range n[1] {
		truth := acc.Truth{Class: 0, NLL: kernel.NLL(r, z, 0, false), Weight: 1, Served: math.NaN()}
		if err := set.Label(r, p, truth); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// TestClassWiseEqualsRows: the value of measure cwece is that of the latest rows, also after a restart, and the text
// says so.
func TestClassWiseEqualsRows(t *testing.T) {
	x := testContext(threshold0(CWECE, .02, .01))
	x.cfg.Rows = 700
	r := newThreshold(x)
	rng := rand.New(rand.NewPCG(1, 19))
	var sets []*acc.Set
	for at := range int64(40) {
		set, _ := drawnSet(t, x.env, rng, 50)
		sets = append(sets, set)
		in := &stage.Pane{Index: at, End: (at + 1) * x.env.Pane, Labelled: 50,
			Cells: []stage.Cell{{PredictionPane: at, Set: set}}}
		if _, err := r.Observe(in); err != nil {
			t.Fatal(err)
		}
		if at%13 == 5 {
			e := &entry{context: x}
			if !e.restore(r.Append(nil)) {
				t.Fatal("the state cannot be read")
			}
			r = e.rule
		}
	}
	got, ok, err := r.Evaluate(0)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := sets[len(sets)-int(got.Rows)/50].Labelled.ClassWise.Clone()
	for _, set := range sets[len(sets)-int(got.Rows)/50+1:] {
		if err := want.Merge(set.Labelled.ClassWise); err != nil {
			t.Fatal(err)
		}
	}
	if value, _ := want.ECE(); got.Value != value || *got.Lo >= value || *got.Hi <= value || got.Rows < 700 ||
		!strings.HasPrefix(got.Detail, "raw class-wise ECE (cwece) of the last ") ||
		!strings.Contains(got.Detail, "; a calibrated model would show about 0.0") {
		t.Errorf("got %+v (%v to %v), want %v", got, *got.Lo, *got.Hi, value)
	}
	other := &entry{context: &context{x.env, x.cfg, &stage.Key{Version: x.key.Version, K: 5}}}
	if other.restore(r.Append(nil)) {
		t.Error("a state of 4 classes is taken for one of 5")
	}
}

// TestFewPositives: the rule of docs/operations.md. Of 50 rows a pane 1 % are positive. While their probabilities are
// right it is never over its limit; when their odds are three times too high or too low, it is within 5,000 rows.
func TestFewPositives(t *testing.T) {
	const panes, size = 400, 50
	for name, factor := range map[string]float64{"high": math.Log(3), "low": -math.Log(3)} {
		x := testContext(threshold0(CWECE, .005, .004))
		x.key = &stage.Key{Version: x.key.Version, K: 2}
		x.cfg.Rows, x.cfg.MinRows = 5000, 5000
		r, rng, over := newThreshold(x), rand.New(rand.NewPCG(1, 23)), 0
		for at := range int64(2 * panes) {
			set, err := x.env.NewSums(2)
			if err != nil {
				t.Fatal(err)
			}
			for range size {
				odds := -math.Log(99) - .9 + 1.3*rng.NormFloat64()
				y := 0
				if rng.Float64() < 1/(1+math.Exp(-odds)) {
					y = 1
				}
				if at >= panes {
					odds += factor
				}
				addRow(t, set, []float64{0, odds}, y)
			}
			if _, err := r.Observe(&stage.Pane{Index: at, End: (at + 1) * x.env.Pane, Labelled: size,
				Cells: []stage.Cell{{PredictionPane: at, Set: set}}}); err != nil {
				t.Fatal(err)
			}
			got, ok, err := r.Evaluate(0)
			if err != nil {
				t.Fatal(err)
			}
			if ok && got.Value > x.cfg.Fire && over == 0 {
				over = int(at+1-panes) * size
			}
		}
		if over <= 0 || over > 5000 {
			t.Errorf("%s: over its limit %d rows after the change, want 1 to 5000", name, over)
		}
	}
}

// addRow adds a labelled row.
func addRow(t *testing.T, set *acc.Set, z []float64, y int) {
	t.Helper()
	p := make([]float64, len(z))
	row, ok := kernel.Logits(z, p)
	if !ok {
		t.Fatal("scores are not finite")
	}
	err := set.Predict(row, 1)
	if err == nil {
		truth := acc.Truth{Class: y, NLL: kernel.NLL(row, z, y, false), Weight: 1, Served: math.NaN()}
		err = set.Label(row, p, truth)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzState: invalid bytes give an error, and what is read encodes to the same bytes.
func FuzzState(f *testing.F) {
	rules := []Config{threshold0(Accuracy, .8, .9), threshold0(Coverage, .8, .9), threshold0(CWECE, .02, .01)}
	fresh := func() *State {
		env := testContext(Config{}).env
		return New(env, rules).NewKey(&stage.Key{Version: &stage.Version{}, K: 4}).(*State)
	}
	s := fresh()
	set, _ := drawnSet(f, s.stage.env, rand.New(rand.NewPCG(1, 17)), 20)
	if _, err := s.entries[2].rule.Observe(&stage.Pane{Cells: []stage.Cell{{Set: set}}}); err != nil {
		f.Fatal(err)
	}
	s.entries[0].alert.AlertState = stage.AlertState{State: stage.Firing, Since: 5, Notified: true,
		Last: stage.NewLastAlert(&record.Alert{}, []byte("{}"))}
	stagetest.FuzzState(f, s, func() stage.KeyState { return fresh() })
}
