package loss

import "math"

// cpc is calibration by pairwise constraints, the penalty alone: of every row, with s(x) = ln(1 + eˣ),
//
//	λ1 Σ_{j≠y} s(z_j − z_y) + λ2 Σ_{j≠y} Σ_{l≠y,j} (s(z_j − z_l) + s(z_l − z_j))
//
// the 1v1 discrimination and the binary exclusion terms, summed over pairs in both orders and averaged over rows. With
// cals the first is divided by K − 1, and the second is Σ_{j≠y} Σ_{l≠y} ½ s(z_j − z_l) over (K − 1)(K − 2), with the
// pairs j = l in it (½ ln 2 each), as in the CALS repository; there is no second term for K = 2. O(K²) a row.
// Reference: Cheng, Vasconcelos, Calibrating Deep Neural Networks by Pairwise Constraints, CVPR 2022; sums and signs of
// the supplement's Eq. 4-6.
type cpc struct {
	lambda1, lambda2 float64
	cals             bool
}

func (l cpc) row(r *rows, i int, w float64, g []float64) float64 {
	d, y, k := r.diff(i), int(r.y[i]), float64(r.k)
	one, two := l.lambda1, 4*l.lambda2 // of a pair j < l with its half
	var sum float64
	if l.cals {
		one /= k - 1
		if two = l.lambda2 / ((k - 1) * (k - 2)); r.k == 2 {
			two = 0
		}
		sum = two * (k - 1) * math.Ln2 / 2
	}
	for j, dj := range d {
		if j == y {
			continue
		}
		v, slope := softplus(dj - d[y])
		sum += one * v
		if g != nil {
			g[j] += w * one * slope
			g[y] -= w * one * slope
		}
		for m := j + 1; m < r.k && two != 0; m++ {
			if m == y {
				continue
			}
			// ½(s(x) + s(−x)) = s(|x|) − |x|/2, with slope σ(x) − ½.
			v, slope := softplus(dj - d[m])
			sum += two * (v - (dj-d[m])/2)
			if g != nil {
				g[j] += w * two * (slope - 0.5)
				g[m] -= w * two * (slope - 0.5)
			}
		}
	}
	return sum
}

// softplus is ln(1 + eˣ) and its slope σ(x).
func softplus(x float64) (value, slope float64) {
	e := math.Exp(-math.Abs(x))
	if x > 0 {
		return x + math.Log1p(e), 1 / (1 + e)
	}
	return math.Log1p(e), e / (1 + e)
}
