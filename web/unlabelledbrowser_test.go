//go:build integration

package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// unlabelledPage returns the page of a window that has no labels yet, as the browser has built it.
func unlabelledPage(t *testing.T, u *record.Unlabelled) string {
	t.Helper()
	h := history.New(history.Config{})
	h.AddSnapshot(record.Snapshot{
		Model:       "m",
		Version:     "1",
		At:          stamp(0),
		Window:      record.Window{Name: "w", Kind: "time", Start: stamp(0), End: stamp(1)},
		Predictions: u.Rows,
		Unlabelled:  u,
	})
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	return chromium(t, srv.URL, "--dump-dom")
}

// TestEstimatesInBrowser: what a window says before labels is on the page, each estimate with what must be true, and by
// how much it was wrong; shares of classes with the test of their assumption.
func TestEstimatesInBrowser(t *testing.T) {
	condition, ece := 3.2, .041
	dom := unlabelledPage(t, &record.Unlabelled{
		Rows:  91,
		Range: &record.Range{Lo: .775, Hi: .8225, Margin: .01, Blocks: 12, Known: true},
		Estimates: []record.Estimate{{Method: "label shift (BBSE)",
			Assumption: "only the shares of the classes have moved", Accuracy: ptr(.8125),
			Lo: ptr(.79), Hi: ptr(.83), ECE: &ece,
			Miss: &record.Miss{Labelled: 50, Difference: .1, SE: .02, Z: 5}}},
		Classes: &record.Classes{PSI: &record.Distance{Value: .25, Null: .01, Threshold: .02},
			Why: "the labelled reference has too few rows yet",
			Shifts: []record.ClassShift{{Method: "label shift (EM)", Distance: .3, Null: .02, Condition: &condition,
				P: .0004, Rejected: true,
				Worst: []record.ClassShare{{Class: 7, Reference: .1, Share: .4, SE: .01, Weight: 4}}}}},
	})
	for _, want := range []string{"last 12 blocks", "1.00", "label shift (BBSE)", "81.25", "79.00 – 83.00", "4.10",
		"5.0 s.e., failed", "only the shares of the classes have moved",
		"PSI 0.2500", "it fails, so do these numbers", "condition 3.2", "40.00", "4.00", "too few rows yet"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(dom)
	}
}

// TestRangeInBrowser: the page says between what the accuracy is where the estimates agree, and that it cannot be known
// where they do not. What is too wide, the library says.
func TestRangeInBrowser(t *testing.T) {
	const unknown, known = "Before labels: accuracy cannot be known without labels", "Before labels: accuracy between"
	past := make([]unlabelled.Past, 10)
	past[3].Excess = .01
	for _, c := range []struct {
		name       string
		lo, hi     float64 // of the second estimate
		want, lack string
	}{
		{"the estimates agree", .78, .84, known, unknown},
		{"the estimates contradict each other", .52, .61, unknown, known},
		{"nearly as wide as an answer may be", .7, .8, known, unknown},
		{"a little wider", .67, .8, unknown, known},
	} {
		r := unlabelled.RangeOf(past, false, unlabelled.Estimate{Accuracy: .8, Lo: .79, Hi: .82},
			unlabelled.Estimate{Accuracy: c.lo + .01, Lo: c.lo, Hi: c.hi})
		dom := unlabelledPage(t, &record.Unlabelled{
			Rows: 500,
			Range: &record.Range{Lo: r.Lo, Hi: r.Hi, Margin: r.Margin, Blocks: r.Past,
				Known: r.Known},
			Estimates: []record.Estimate{
				{Method: "confidence", Assumption: "inputs alone", Accuracy: ptr(.8), Lo: ptr(.79), Hi: ptr(.82)},
				{Method: "correctness shift", Assumption: "shares alone", Accuracy: ptr(c.lo + .01), Lo: ptr(c.lo),
					Hi: ptr(c.hi)}},
		})
		_, summary, _ := strings.Cut(dom, `<details id="unlabelled"`)
		summary, _, _ = strings.Cut(summary, "</summary>")
		if !strings.Contains(summary, c.want) || strings.Contains(summary, c.lack) {
			t.Errorf("%s, %.3f to %.3f: the page says %q, want %q", c.name, r.Lo, r.Hi, summary, c.want)
		}
	}
}

// TestRefutedInBrowser: an estimate that its rows refute has no numbers, and the page says that labels are needed.
func TestRefutedInBrowser(t *testing.T) {
	dom := unlabelledPage(t, &record.Unlabelled{
		Rows:  500,
		Range: &record.Range{Lo: .96, Hi: 1, Blocks: 12, Rejected: true},
		Estimates: []record.Estimate{
			{Method: "confidence", Assumption: "inputs alone", Accuracy: ptr(.965), Lo: ptr(.96), Hi: ptr(.97)},
			{Method: "correctness shift", Assumption: "shares alone", Rejected: true}},
	})
	for _, want := range []string{"Before labels: accuracy cannot be known without labels", "labels are needed",
		"shares alone — refuted by these rows"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(dom, "100.00 – 100.00") || strings.Contains(dom, "0.00 – 0.00") {
		t.Error("the page has an interval without width")
	}
}
