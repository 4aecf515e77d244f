package refit

import (
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// TestFailedFitIsRecorded: a fit that fails or panics gives a "no change" with its error, and has no other effect.
func TestFailedFitIsRecorded(t *testing.T) {
	rows := sample(batchtest.Rows(74, batchtest.Options{N: 300}))
	for method, want := range map[string]string{"no such method": "no such method", "temperature": "panic: "} {
		cfg := testConfig()
		cfg.Method = method
		x := newFixture(t, cfg, 4)
		fit := append([]acc.SampleRow(nil), rows...)
		x.must(x.begin(fit, reasonPeriod, &stage.Pane{Index: 10, End: 11 * paneLength}))
		if method == "temperature" {
			panicked := &job{done: make(chan struct{}),
				results: []fitResult{recovered(method, func() (fitResult, error) { panic("index out of range") })}}
			close(panicked.done)
			x.stage.jobs[x.run] = panicked
		}
		x.must(x.stepRun(&stage.Pane{Index: 11, End: 12 * paneLength, Labelled: 1}))
		d := x.published(pipeline.StreamDecisions)
		if len(d) != 1 || d[0].Published || !strings.Contains(d[0].Outcome, want) ||
			len(d[0].Evidence.Candidates) != 1 || !strings.Contains(d[0].Evidence.Candidates[0].Outcome, want) {
			t.Errorf("%s: decisions %+v, want one without a change that says %q", method, d, want)
		}
		if x.run != nil {
			t.Errorf("%s: the refit goes on", method)
		}
	}
}

// TestCancelledFitsEnd: when a task is closed, its fits end.
func TestCancelledFitsEnd(t *testing.T) {
	p := NewPool(1)
	p <- struct{}{}
	j := newJob([]string{"temperature"}, sample(batchtest.Rows(75, batchtest.Options{N: 300})),
		capped{4, nllBound(4, 0)}, 1, 0)
	p.start(j, make(chan struct{}, 1))
	j.cancelled.Store(true)
	<-p
	<-j.done
	if len(j.results) != 0 {
		t.Errorf("%d results of a fit that nobody wants", len(j.results))
	}
}

// TestFitsAreNeverCertain: where all rows of a step are right or wrong, a map of steps says 1 or 0. What is fitted to
// be served gives no class less than the tests see.
func TestFitsAreNeverCertain(t *testing.T) {
	rows := sample(batchtest.Rows(76, batchtest.Options{N: 3000, Sharpness: 2}))
	of := capped{4, nllBound(4, 0)}
	methods := []string{"isotonic", "histogram", "histogram_width", "spline"}
	j := newJob(methods, rows, of, 1, 0)
	j.fitAll()
	certain := 0
	for i, r := range j.results {
		if r.err != nil {
			t.Fatal(r.err)
		}
		plain, _, err := calibrator.Fit(methods[i], calibrator.NewData(j.z, 4, j.y, j.w), j.options)
		if err != nil {
			t.Fatal(err)
		}
		was, now := plain.(calibrator.Scalar), r.cal.(calibrator.Scalar)
		for c := .25; c <= 1; c += 1. / 1024 {
			least, x := math.Exp(-of.bound), was.Map(c)
			if x == 0 || x == 1 {
				certain++
			}
			if want := max(least, min(1-least, x)); math.Abs(now.Map(c)-want) > 1e-12 {
				t.Errorf("%s of %.4f: %v, want %v", r.method, c, now.Map(c), want)
			}
		}
	}
	if certain == 0 {
		t.Error("no step is 0 or 1: nothing is tested")
	}
}
