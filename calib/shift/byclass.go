package shift

import (
	"fmt"
	"math"
)

// ByLabel are sums over labelled rows by label and confidence bin, from which the calibration error under other shares
// follows.
type ByLabel struct {
	Rows []float64 // K: rows of the label
	Gap  []float64 // K×M, row-major: Σ (a - c) of the rows of the label in the bin, a = 1 where the row is right
}

// ECE returns the expected calibration error of the confidence under the shares q, with importance weights w_j =
// q_j/(N_j/N):
//
//	ECE = Σ_b |Σ_j w_j Gap_jb| / Σ_j w_j N_j
//
// A class without rows says nothing of its rows: covered is the share that classes with rows have, to which ECE
// belongs. ECE is biased upward by the noise of n rows as ever, and more so the more the weights differ. ErrInput where
// shapes differ, ECE is NaN where covered is 0.
func (b ByLabel) ECE(q []float64) (ece, covered float64, err error) {
	k := len(b.Rows)
	if k == 0 || len(q) != k || len(b.Gap)%k != 0 {
		return 0, 0, fmt.Errorf("%d shares, %d classes, %d gaps, allowed K, K and K·M: %w", len(q), k, len(b.Gap),
			ErrInput)
	}
	m := len(b.Gap) / k
	gap := make([]float64, m)
	for j, n := range b.Rows {
		if !(n > 0) {
			continue
		}
		covered += q[j]
		for i, x := range b.Gap[j*m : (j+1)*m] {
			gap[i] += q[j] / n * x
		}
	}
	for _, g := range gap {
		ece += math.Abs(g)
	}
	if covered == 0 {
		return math.NaN(), 0, nil
	}
	return ece / covered, covered, nil
}
