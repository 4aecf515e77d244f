package model

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestCalibratorTooLargeForRecord: a fit whose calibrator is larger than a record is not a candidate, and the decision
// says so. Other candidates are published.
func TestCalibratorTooLargeForRecord(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(321, batchtest.Options{N: 3000, MaxLag: 5 * second, Sharpness: 2.5})
	for _, c := range []struct {
		method    string
		most      int
		published bool
	}{{"matrix", 0, true}, {"matrix", 200, false}, {"temperature", 200, true}} {
		s := defaultSetup()
		s.model.Refit.Method, s.model.MaxBytes = c.method, c.most
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 20), 1).run(worldtest.AnyOrder)
		published, said := 0, false
		for _, d := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators) {
			if d.Published {
				published++
			}
			if c.most > 0 && len(d.Calibrator) > c.most {
				t.Errorf("%s of %d bytes was published, at most %d fit", c.method, len(d.Calibrator), c.most)
			}
		}
		for _, d := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamDecisions) {
			said = said || strings.Contains(d.Outcome, "must be at most 200, 15/16 of kafka.message_max_bytes")
		}
		if (published > 0) != c.published || said != (c.method == "matrix" && c.most > 0) {
			t.Errorf("%s, at most %d bytes: %d published, with a reason: %t", c.method, c.most, published, said)
		}
	}
}
