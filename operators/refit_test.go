package operators

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

func TestVerdict(t *testing.T) {
	spec := &RefitSpec{Z: 2, MaxECERise: .01, MaxAccDr: .02}
	better := output.Evidence{NLLDiff: -.1, NLLDiffSE: .01, ECEInForce: .1, ECENew: .05, AccInForce: .8, AccNew: .8}
	with := func(f func(*output.Evidence)) output.Evidence { e := better; f(&e); return e }
	for _, c := range []struct {
		name    string
		e       output.Evidence
		publish bool
		why     string
	}{
		{"better", better, true, "published"},
		{"not significant", with(func(e *output.Evidence) { e.NLLDiffSE = .051 }), false, "not significantly"},
		{"just not significant", with(func(e *output.Evidence) { e.NLLDiffSE = .05 }), false, "not significantly"},
		{"worse", with(func(e *output.Evidence) { e.NLLDiff = .1 }), false, "not significantly"},
		{"no difference at all", with(func(e *output.Evidence) { e.NLLDiff, e.NLLDiffSE = 0, 0 }), false, "not significantly"},
		{"ECE rises within the bound", with(func(e *output.Evidence) { e.ECENew = .109 }), true, "published"},
		{"ECE rises", with(func(e *output.Evidence) { e.ECENew = .111 }), false, "ECE would rise"},
		{"accuracy falls within the bound", with(func(e *output.Evidence) { e.AccNew = .781 }), true, "published"},
		{"accuracy falls", with(func(e *output.Evidence) { e.AccNew = .779 }), false, "accuracy would fall"},
	} {
		if publish, why := verdict(spec, &c.e); publish != c.publish || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q, want %v, %q", c.name, publish, why, c.publish, c.why)
		}
	}
}

// TestPairedMean against the textbook: equal weights give mean and sqrt(Σ(d-mean)²)/n.
func TestPairedMean(t *testing.T) {
	d := []float64{1, 2, 4, 9}
	for _, scale := range []float64{1, 7} {
		w := []float64{scale, scale, scale, scale}
		mean, se := pairedMean(d, w, 4*scale)
		if math.Abs(mean-4) > 1e-12 || math.Abs(se-math.Sqrt(9+4+0+25)/4) > 1e-12 {
			t.Errorf("weights %v: mean %v, se %v, want 4, %v", scale, mean, se, math.Sqrt(38)/4)
		}
	}
}

// TestNoChangeHasEvidence refits calibrated rows every minute: nothing may be published, and every decision says why.
func TestNoChangeHasEvidence(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(41, batchtest.Options{N: 3000, MaxLag: 5 * second})
	s := defaultSetup()
	s.model.Rules = nil
	w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
	if c := decodeAll[output.Calibrator](t, w.outputs, pipeline.StreamCalibrators); len(c) > 0 {
		t.Errorf("published %+v on calibrated rows", c[0])
	}
	decisions := decodeAll[output.Calibrator](t, w.outputs, pipeline.StreamDecisions)
	if len(decisions) < 4 {
		t.Fatalf("%d decisions in five periods", len(decisions))
	}
	last := int64(0)
	for _, d := range decisions {
		e := d.Evidence
		if d.Published || d.Revision != 0 || d.Reason != "period" || !strings.HasPrefix(d.Outcome, "no change: ") || e.FitRows == 0 || e.TestRows == 0 || e.NLLNew == 0 || e.ECEInForce == 0 {
			t.Errorf("decision %+v: want no change on period, with evidence", d)
		}
		if e.FitTo > e.TestTo || math.Abs(float64(e.TestRows)/float64(e.FitRows+e.TestRows)-.3) > .01 || e.FitRows+e.TestRows > 2000 {
			t.Errorf("fitted on %d rows to %s, tested on %d to %s: want the newest 30 %% of at most 2000", e.FitRows, e.FitTo, e.TestRows, e.TestTo)
		}
		at := nanos(t, d.DecidedAt)
		if pipeline.PaneIndex(at, 60*second) == pipeline.PaneIndex(last, 60*second) {
			t.Errorf("two refits in the period of %s", d.DecidedAt)
		}
		last = at
	}
}

// TestRefitWaitsForFreshRows: on an alarm only rows since its start count, and not before there are enough.
func TestRefitWaitsForFreshRows(t *testing.T) {
	s := defaultSetup()
	task := s.task()
	v := &version{model: "m", name: "v", k: 4, keys: map[string]*keyState{}}
	k := v.key("", &task.cfg)
	k.sample = sample(batchtest.Rows(42, batchtest.Options{N: 1000, Sharpness: 3}))
	since := k.sample[800].TS
	k.rules[0] = ruleState{state: firing, since: since}
	end := batchtest.Start + 100*second
	refit := func(end int64) []pipeline.Message {
		t.Helper()
		if err := task.maybeRefit(v, k, &paneInput{end: end, labelled: 1}); err != nil {
			t.Fatal(err)
		}
		return task.Outputs()
	}
	if out := refit(end); len(out) != 0 {
		t.Fatalf("refit on 200 fresh rows: %s, want to wait for 300", out[0].Value)
	}
	k.rules[0].since = k.sample[700].TS
	out := refit(end)
	c := decodeAll[output.Calibrator](t, out, pipeline.StreamCalibrators)
	if len(c) != 1 || c[0].Reason != "alarm" || c[0].Evidence.FitRows != 210 || c[0].Evidence.TestRows != 90 || nanos(t, c[0].Evidence.FitFrom) != k.sample[700].TS {
		t.Fatalf("got %+v, want one calibrator of the last 300 rows", c)
	}
	if out := refit(end + s.model.Refit.Cooldown - 1); len(out) != 0 {
		t.Error("refit within the cooldown")
	}
	if out := refit(end + s.model.Refit.Cooldown); len(out) != 0 {
		t.Error("refit after the cooldown without a row since the new calibrator")
	}
}

func sample(rows []batchtest.Row) []acc.SampleRow {
	out := make([]acc.SampleRow, 0, len(rows))
	for i, r := range rows {
		out = append(out, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: r.TS, LabelTS: r.LabelTS, W: 1, Y: r.Label, Z: r.Scores})
	}
	return out
}

func TestCalibratorInForceByEventTime(t *testing.T) {
	v := &version{}
	for i, from := range []int64{100, 200, 300} {
		v.calibrators = append(v.calibrators, &inForce{revision: i + 1, from: from})
	}
	at := func(want map[int64]int) {
		t.Helper()
		for ts, revision := range want {
			got := 0
			if f := v.at(ts); f != nil {
				got = f.revision
			}
			if got != revision {
				t.Errorf("revision %d in force at %d, want %d", got, ts, revision)
			}
		}
	}
	at(map[int64]int{0: 0, 99: 0, 100: 1, 199: 1, 200: 2, 300: 3, 1000: 3})
	v.forget(199)
	at(map[int64]int{100: 1, 199: 1, 200: 2})
	v.forget(200)
	at(map[int64]int{200: 2, 299: 2, 300: 3})
	v.forget(1000)
	at(map[int64]int{300: 3})
	if len(v.calibrators) != 1 {
		t.Errorf("%d calibrators kept, want the newest", len(v.calibrators))
	}
}

func TestPublishedByEventTime(t *testing.T) {
	p := NewPublished()
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	put := func(revision int, from int64, temperature float64) {
		t.Helper()
		c, err := calibrator.NewTemperature(temperature)
		if err != nil {
			t.Fatal(err)
		}
		b, err := calibrator.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Put(m, revision, from, b); err != nil {
			t.Fatal(err)
		}
	}
	put(1, 100, 2)
	put(2, 200, 3)
	put(2, 200, 3) // the topic is read again after a restart
	if p.at(m, 99, 2) != nil || p.at(m, 100, 2).revision != 1 || p.at(m, 200, 2).revision != 2 || len(p.by[m]) != 2 || p.at(arrowio.ModelKey{Model: "m", Version: "w"}, 500, 2) != nil {
		t.Errorf("table %+v", p.by)
	}
	if err := p.Put(m, 3, 300, []byte("{}")); err == nil {
		t.Error("a calibrator that is none was taken")
	}
}

// TestApplyWritesTheCalibratedStream checks probabilities and that nothing else depends on the operator.
func TestApplyWritesTheCalibratedStream(t *testing.T) {
	rows := batchtest.Rows(43, batchtest.Options{N: 100})
	s := defaultSetup()
	plain := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	s.apply = NewPublished()
	w := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	if g, want := w.hash(), plain.hash(); g != want {
		t.Errorf("hash %s, without the calibrated stream %s", g, want)
	}
	n := 0
	for _, m := range w.letters {
		if m.Stream == pipeline.StreamCalibrated {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d calibrated messages, want 4", n)
	}
}

// TestWholeComesAfterSlices: a refit sees the statistics of every slice of its pane done.
func TestWholeComesAfterSlices(t *testing.T) {
	rows := batchtest.Rows(44, batchtest.Options{N: 200, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	w := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	var order []string
	for _, snap := range w.snapshots() {
		if snap.Window.Name == "rows" && (len(order) == 0 || order[len(order)-1] != snap.Slice) {
			order = append(order, snap.Slice)
		}
	}
	if len(order) < 6 || !slices.Equal(order[:3], []string{"region=r0", "region=r1", ""}) {
		t.Errorf("order of keys %q", order)
	}
}
