package diagram

import (
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/plot"
)

func TestShortTitle(t *testing.T) {
	if got := Short("a/b.csv"); got != "a/b.csv" {
		t.Errorf("got %q, want it whole", got)
	}
	if got := Short(strings.Repeat("é", 60) + ".csv"); got != "…"+strings.Repeat("é", 41)+".csv" {
		t.Errorf("got %q, want the last 45 runes", got)
	}
}

// TestRiskCoverageHasTheAreaOfAURC: without ties and below the limit of points, AURC is the mean of the curve.
func TestRiskCoverageHasTheAreaOfAURC(t *testing.T) {
	c := []float64{.9, .5, .7, .6, .8, .95}
	a := []bool{true, false, true, false, false, true}
	s := metric.SortWeighted(c, a, nil)
	sum := 0.0
	curve := riskCoverage(s)
	for _, p := range curve {
		sum += p.Y
	}
	if got, want := sum/float64(len(curve)), metric.AURC(s); len(curve) != len(c) || math.Abs(got-want) > 1e-15 {
		t.Errorf("got mean risk %v of %d points, want %v of %d", got, len(curve), want, len(c))
	}
	tied := riskCoverage(metric.SortWeighted([]float64{.5, .5, .9}, []bool{true, false, true}, nil))
	if len(tied) != 2 || tied[0].Y != 0 || tied[1].Y != 1./3 || tied[1].X != 1 {
		t.Errorf("got %v, want (1/3, 0) and (1, 1/3): a tie is one point", tied)
	}
	long := make([]float64, 10*maxCurvePoints)
	for i := range long {
		long[i] = float64(i)
	}
	curve = riskCoverage(metric.SortWeighted(long, make([]bool, len(long)), nil))
	if last := curve[len(curve)-1]; len(curve) > maxCurvePoints+1 || last.X != 1 || last.Y != 1 {
		t.Errorf("got %d points that end at %v, want at most %d and (1, 1)", len(curve), last, maxCurvePoints+1)
	}
}

// TestWeights: a row of weight w is drawn as w rows, in the diagram, the curve and the histogram.
func TestWeights(t *testing.T) {
	r := metric.Rows{K: 2, F64: []float64{.1, .9, .1, .9, .4, .6}, Probs: true, Labels: []int32{1, 0, 1},
		W: []float64{3, 1, 0}}
	top, err := topLabels(r, metric.MSP)
	if err != nil {
		t.Fatal(err)
	}
	var counts []plot.Text
	var dots []plot.Point
	for _, m := range reliability(Report{Rows: r}, metric.EqualWidth(top.c, top.a, top.w, 10)).Marks {
		switch m := m.(type) {
		case plot.Text:
			counts = append(counts, m)
		case plot.Dots:
			dots = m.Points
		}
	}
	if len(dots) != 1 || dots[0] != (plot.Point{X: .9, Y: .75}) || len(counts) != 1 || counts[0].Text != "2" {
		t.Errorf("got %v %v, want accuracy 3/4 at 0.9 of 2 rows, and no row of weight 0", dots, counts)
	}
	curve := riskCoverage(metric.SortWeighted(top.csf, top.a, top.w))
	if len(curve) != 1 || curve[0].X != 1 || curve[0].Y != .25 {
		t.Errorf("got the curve %v, want risk 1/4 at coverage 1", curve)
	}
}
