package unlabelled

import (
	"math"

	"github.com/plumbline/plumbline/calib/metric"
)

// Estimate is an estimate without labels.
type Estimate struct {
	Method     string
	Assumption string  // what must be true for it, in words for people
	N          int64   // unlabelled rows
	Accuracy   float64 // of these rows
	Lo, Hi     float64 // 95 %: of the accuracy of these rows if the assumption holds
	SE         float64 // its standard error
	// Rejected: the rows refute the assumption. There is no estimate: Accuracy, Lo and Hi are the nearest that there
	// could be.
	Rejected bool
	OfLabels bool    // SE has the draw of the labels of these rows
	ECE      float64 // of the raw confidence, by the bins that were given; NaN where the method says nothing of it
}

const z95 = 1.959963984540054

// ConfidenceAssumption is what ConfidenceBased rests on.
const ConfidenceAssumption = "P(right | confidence) is as it was when the calibrator was fitted: inputs may drift, " +
	"what is right for an input may not"

// ConfidenceBased returns the confidence-based estimate (CBPE, DoC) from unlabelled bins of the raw confidence c and
// the calibrator in force as a map of confidences, q = calibrate(c):
//
//	accuracy = Σ w q / Σ w        ± 1.96 sqrt(Σ w² q(1-q)) / Σ w
//	ECE      = Σ_b w_b/Σw · |q̄_b - c̄_b|   over m equal-width bins, m ≥ 1
//
// cells are those of acc.Grid.Groups: a cell's rows are taken at their mean confidence. calibrate must map [0, 1] into
// itself; nil is the identity, of which ECE is 0 by definition. The interval has the sampling of labels given q, not
// the error of the calibrator: a calibrator fitted on n₀ rows adds about sqrt(accuracy(1-accuracy)/n₀). NaN without
// rows.
// Reference: Garg et al., Leveraging Unlabeled Data to Predict Out-of-Distribution Performance, ICLR 2022, section 3;
// NannyML's CBPE.
func ConfidenceBased(cells []metric.Bin, calibrate func(float64) float64, m int) Estimate {
	e := Estimate{Method: "confidence-based", Assumption: ConfidenceAssumption}
	gap := make([]float64, m)
	var weight, right, variance float64
	for _, b := range cells {
		if !(b.W > 0) {
			continue
		}
		c := b.Conf()
		q := c
		if calibrate != nil {
			q = min(1, max(0, calibrate(c)))
		}
		e.N += b.N
		weight += b.W
		right += b.W * q
		variance += b.W * b.W / float64(max(b.N, 1)) * q * (1 - q) // Σw² of n rows of equal weight
		gap[min(m-1, max(0, metric.BinIndex(c, m)))] += b.W * (q - c)
	}
	e.Accuracy = right / weight
	e.SE, e.OfLabels = math.Sqrt(variance)/weight, true
	half := z95 * e.SE
	e.Lo, e.Hi = max(0, e.Accuracy-half), min(1, e.Accuracy+half)
	for _, g := range gap {
		e.ECE += math.Abs(g)
	}
	e.ECE /= weight
	return e
}

// Miss is how far an estimate was from the truth, once labels have come: a signal of its own. Z is in standard errors
// of both: beyond about 3 the assumption has failed, and what else the method says is not to be believed.
type Miss struct{ Difference, SE, Z float64 }

// Against compares the estimate with right out of n labelled rows among the N that it is of:
//
//	SE² = SE(estimate)² + p(1-p)·(1/n - 1/N)   if that has the draw of the labels of the N rows
//	SE² = SE(estimate)² + p(1-p)/n             else
//
// with p of one row of each kind more, and SE of one row at least.
func (e Estimate) Against(right, n float64) Miss {
	p := right / n
	smooth := (right + 1) / (n + 2)
	drawn := 1 / n
	if e.OfLabels {
		drawn = max(0, 1/n-1/float64(e.N))
	}
	d := Miss{Difference: e.Accuracy - p, SE: max(math.Sqrt(smooth*(1-smooth)*drawn+e.SE*e.SE), 1/(n+2))}
	d.Z = d.Difference / d.SE
	return d
}
