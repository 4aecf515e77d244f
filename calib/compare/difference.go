package compare

import (
	"encoding/json"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// Difference is the mean difference of paired losses in nats, and its 95 % interval. A missing number is NaN, which is
// null in JSON.
type Difference struct{ Mean, Lo, Hi float64 }

// MarshalJSON shows a number that is missing as null.
func (d Difference) MarshalJSON() ([]byte, error) {
	number := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal(map[string]*float64{"mean": number(d.Mean), "lo": number(d.Lo), "hi": number(d.Hi)})
}

// Below reports whether the whole interval is below 0.
func (d Difference) Below() bool { return d.Hi < 0 }

// z975 is the 97.5 % quantile of the standard normal distribution.
const z975 = 1.959963984540054

// Paired returns the weighted mean of the n differences a_i - b_i and its interval by the central limit theorem,
//
//	d = Σ w_i (a_i - b_i) / W,  W = Σ w_i
//	s² = n/(n-1) Σ w_i² (a_i - b_i - d)² / W²,  [d - 1.96 s, d + 1.96 s]
//
// nil w means weights of 1. n counts the rows of positive weight; with fewer than two of them there is no interval.
// Rows are the unit of sampling: the interval covers the choice of held-out rows, not the choice of rows for the fit.
func Paired(a, b, w []float64) Difference {
	weight := func(i int) float64 {
		if w == nil {
			return 1
		}
		return w[i]
	}
	var n, total, sum float64
	for i := range a {
		if wi := weight(i); wi > 0 {
			n++
			total += wi
			sum += wi * (a[i] - b[i])
		}
	}
	mean := sum / total // NaN without rows
	if n < 2 {
		return Difference{mean, math.NaN(), math.NaN()}
	}
	var square float64
	for i := range a {
		d := weight(i) * (a[i] - b[i] - mean)
		square += d * d
	}
	half := z975 * math.Sqrt(square*n/(n-1)) / total
	return Difference{mean, mean - half, mean + half}
}

// losses returns the NLL of every row of probabilities in float64. A probability of 0 counts as the smallest positive
// float64, as in metric.Evaluate.
func losses(r metric.Rows) []float64 {
	out := make([]float64, len(r.Labels))
	for i, y := range r.Labels {
		out[i] = -kernel.LogProb(r.F64[i*r.K+int(y)])
	}
	return out
}
