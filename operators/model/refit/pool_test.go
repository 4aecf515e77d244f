package refit

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
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
			x.stage.jobs[x.State] = panicked
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
	j := newJob([]string{"temperature"}, sample(batchtest.Rows(75, batchtest.Options{N: 300})), 4, 1, 0)
	p.start(j, make(chan struct{}, 1))
	j.cancelled.Store(true)
	<-p
	<-j.done
	if len(j.results) != 0 {
		t.Errorf("%d results of a fit that nobody wants", len(j.results))
	}
}
