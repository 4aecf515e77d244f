package rule

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// known is an Estimator whose map of confidences is the identity.
type known struct{}

func (known) Confidence(c float64) float64             { return c }
func (known) Reference() (right, n float64, full bool) { return 800, 1000, true }
func (known) Mapped() (since int64, turned bool)       { return 0, false }

// TestKindsAreDescribed: docs/operations.md has an item for each kind, which names its measures.
func TestKindsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		_, item, ok := strings.Cut(string(text), "\n- **`"+k.name+"`**: ")
		if item, _, _ = strings.Cut(item, "\n"); !ok {
			t.Errorf("docs/operations.md, Rules: no item for kind %s", k.name)
		}
		for _, measure := range k.measures {
			if len(k.measures) > 1 && !strings.Contains(item, "`"+measure+"`") {
				t.Errorf("docs/operations.md, Rules: kind %s without `%s`", k.name, measure)
			}
		}
	}
}

// TestEveryMeasureIsEvaluated: each measure of a kind has code of its own, and does not fall through to another.
func TestEveryMeasureIsEvaluated(t *testing.T) {
	for _, k := range kinds {
		if k.name == Excess { // one measure, from the key's recent bins
			continue
		}
		for _, measure := range k.measures {
			x := testContext(Config{Name: "r", Kind: k.name, Measure: measure, Signal: stage.SignalRaw, Score: "msp",
				Rows: 300, MinRows: 1, Fire: 1, Reference: Pinned, ReferenceRows: 300, Alpha: .01,
				Age: 20 * time.Second})
			x.key.Estimator = known{}
			r, valued := k.make(x), false
			for at := range int64(20) {
				in := &stage.Pane{Index: at, End: (at + 1) * x.env.Pane, Labelled: 50,
					Cells: []stage.Cell{{PredictionPane: at, Set: counted(t, x.env, [2]int{50, 50})}},
					Rows: []acc.SampleRow{
						{TS: at * x.env.Pane, W: 1, Z: []float32{2, 1, 0, 0}},
						{TS: at * x.env.Pane, W: 1, Z: []float32{2, 1, 0, 0}, Y: 1}}}
				if _, err := r.Observe(in); err != nil {
					t.Fatal(err)
				}
				_, ok, err := r.Evaluate(at)
				if err != nil {
					t.Fatalf("%s of kind %s: %v", measure, k.name, err)
				}
				valued = valued || ok
			}
			if !valued {
				t.Errorf("%s of kind %s: no value", measure, k.name)
			}
		}
	}
}
