package diagram

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/plot"
)

// maxCurvePoints bounds what is drawn of a curve: more do not show on a panel.
const maxCurvePoints = 1000

// topLabel is the top-label view of the labelled rows: confidence, the score that the risk-coverage curve ranks by,
// and correctness.
type topLabel struct {
	c, csf []float64
	a      []bool
	w      []float64 // nil where every row counts once
}

func topLabels(r metric.Rows, csf string) (topLabel, error) {
	if r.F64 != nil {
		return topLabelsOf(r, r.F64, csf)
	}
	return topLabelsOf(r, r.F32, csf)
}

func topLabelsOf[T kernel.Float](r metric.Rows, scores []T, csf string) (topLabel, error) {
	var out topLabel
	p := make([]float64, r.K)
	summarise := kernel.Logits[T]
	if r.Probs {
		summarise = kernel.Probs[T]
	}
	for i, y := range r.Labels {
		if y < 0 || r.W != nil && r.W[i] == 0 {
			continue
		}
		row, ok := summarise(scores[i*r.K:(i+1)*r.K], p)
		if !ok {
			return out, fmt.Errorf("row %d: scores not allowed", i)
		}
		v := row.Conf
		switch csf {
		case metric.Margin:
			v = row.Margin()
		case metric.NegEnt:
			v = kernel.NegEnt(row, r.K)
		}
		out.c, out.csf, out.a = append(out.c, row.Conf), append(out.csf, v), append(out.a, row.Arg == int(y))
		if r.W != nil {
			out.w = append(out.w, r.W[i])
		}
	}
	return out, nil
}

// riskCoverage are the points of metric.RiskCoverage, about maxCurvePoints of them, the last one always.
func riskCoverage(s metric.Sorted) []plot.Point {
	curve := metric.RiskCoverage(s)
	var out []plot.Point
	next := 0.0
	for i, p := range curve {
		if p.Coverage < next && i < len(curve)-1 {
			continue
		}
		out = append(out, plot.Point{X: p.Coverage, Y: p.Risk})
		next = p.Coverage + 1./maxCurvePoints
	}
	return out
}
