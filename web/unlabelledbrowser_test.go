//go:build integration

package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// TestEstimatesInBrowser: what a window says before labels is on the page, each estimate with what must be true, and by
// how much it was wrong; shares of classes with the test of their assumption.
func TestEstimatesInBrowser(t *testing.T) {
	h := history.New(history.Config{})
	condition, ece := 3.2, .041
	h.AddSnapshot(record.Snapshot{
		Model:   "m",
		Version: "1",
		At:      stamp(0),
		Window: record.Window{
			Name:  "w",
			Kind:  "time",
			Start: stamp(0),
			End:   stamp(1),
		},
		Predictions: 91,
		Unlabelled: &record.Unlabelled{
			Rows:  91,
			Range: &record.Range{Lo: .775, Hi: .8225, Margin: .01, Blocks: 12, Known: true},
			Estimates: []record.Estimate{{Method: "label shift (BBSE)",
				Assumption: "only the shares of the classes have moved", Accuracy: .8125, Lo: .79, Hi: .83, ECE: &ece,
				Miss: &record.Miss{Labelled: 50, Difference: .1, SE: .02, Z: 5}}},
			Classes: &record.Classes{PSI: &record.Distance{Value: .25, Null: .01, Threshold: .02},
				Why: "the labelled reference has too few rows yet",
				Shifts: []record.ClassShift{{Method: "label shift (EM)", Distance: .3, Null: .02, Condition: &condition,
					P: .0004, Rejected: true,
					Worst: []record.ClassShare{{Class: 7, Reference: .1, Share: .4, SE: .01, Weight: 4}}}}},
		},
	})
	srv := httptest.NewServer(still(h))
	defer srv.Close()
	dom := chromium(t, srv.URL, "--dump-dom")
	for _, want := range []string{"Before labels: accuracy between 77.50", "82.25", "last 12 blocks", "1.00",
		"label shift (BBSE)", "81.25", "79.00 – 83.00", "4.10",
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
