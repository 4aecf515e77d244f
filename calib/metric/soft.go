package metric

import "math"

// SoftWeights writes to u the soft memberships of confidence c in M = len(u) bins, which sum to 1:
//
//	u_j ∝ exp(-(c - ξ_j)²/T),  ξ_j = (j + ½)/M
//
// c is in [0,1] and temperature T > 0. As T → 0 the weight goes to the nearest centre; the softmax is shifted
// by its maximum, so any T is finite. It panics if u is empty or T is not positive.
// Reference: Karandikar et al., Soft Calibration Objectives for Neural Networks, NeurIPS 2021, Eq. 8
// (released code: centres on [1/K, 1] and a 1e-5 mixing, not done here).
func SoftWeights(u []float64, c, temperature float64) {
	m := len(u)
	if m == 0 || !(temperature > 0) {
		panic("metric: soft weights need a bin and a positive temperature")
	}
	softWeights(u, c, temperature, softStep(m, temperature))
}

// softStep returns exp(-2h²/T), h = 1/m: by what the ratio of neighbouring weights changes from bin to bin.
func softStep(m int, temperature float64) float64 {
	h := 1 / float64(m)
	return math.Exp(-2 * h * h / temperature)
}

// softWeights is SoftWeights by the ratios of neighbours, outward from the nearest centre, which are at most 1 and
// fall: two exponentials in place of M. After k bins the relative error is about k² roundings, and u is small.
func softWeights(u []float64, c, temperature, step float64) {
	m := len(u)
	near := min(max(int(c*float64(m)), 0), m-1)
	h := 1 / float64(m)
	d := c - (float64(near)+0.5)/float64(m)
	up := math.Exp(min(0, (2*d-h)*h/temperature))
	down := math.Exp(min(0, (-2*d-h)*h/temperature))
	u[near] = 1
	sum := 1.0
	for j, v := near+1, 1.0; j < m; j++ {
		v *= up
		up *= step
		u[j] = v
		sum += v
	}
	for j, v := near-1, 1.0; j >= 0; j-- {
		v *= down
		down *= step
		u[j] = v
		sum += v
	}
	sum = 1 / sum
	for j := range u {
		u[j] *= sum
	}
}

// SoftBins returns the soft-bin sums of n rows for m bins at the given temperature; w may be nil.
// It panics if the lengths differ, m < 1 or the temperature is not positive.
func SoftBins(c []float64, a []bool, w []float64, m int, temperature float64) SoftSums {
	checkLengths(c, a, w)
	s := newSoftSums(m)
	if m < 1 || !(temperature > 0) {
		panic("metric: soft weights need a bin and a positive temperature")
	}
	u, step := make([]float64, m), softStep(m, temperature)
	for i, ci := range c {
		softWeights(u, ci, temperature, step)
		wi := weight(w, i)
		s.W += wi
		for j, uj := range u {
			uj *= wi
			s.S[j] += uj
			s.UC[j] += uj * ci
			s.UC2[j] += uj * ci * ci
			if a[i] {
				s.UA[j] += uj
			}
		}
	}
	return s
}

func newSoftSums(m int) SoftSums {
	return SoftSums{S: make([]float64, m), UC: make([]float64, m), UA: make([]float64, m), UC2: make([]float64, m)}
}

// SBECEBin returns the soft-binned ECE between bin means:
//
//	(Σ_j S_j/W · |A_j - C_j|^p)^(1/p),  A_j = UA_j/S_j, C_j = UC_j/S_j
//
// p ≥ 1. NaN where W = 0. Reference: Karandikar et al., Eq. 8-12, with the outer root (the released code omits it).
func SBECEBin(s SoftSums, p float64) float64 {
	if !(s.W > 0) {
		return math.NaN()
	}
	n := normOf(p)
	for j, sj := range s.S {
		if sj > 0 {
			n.add(math.Abs(s.UA[j]-s.UC[j])/sj, sj)
		}
	}
	return n.mean(s.W)
}

// SBECELB returns the soft-binned ECE between each row's confidence and its bins' accuracies, for p = 2, where
// it is a function of the sums:
//
//	(1/W Σ_i Σ_j u_ij (A_j - c_i)²)^½ = (1/W Σ_j [S_j A_j² - 2 A_j UC_j + UC2_j])^½
//
// NaN where W = 0. It is an upper bound of SBECEBin(s, 2); the spread of c inside a bin is in it, so a
// perfectly calibrated model does not show 0. Reference: Karandikar et al., Eq. 8-12.
func SBECELB(s SoftSums) float64 {
	if !(s.W > 0) {
		return math.NaN()
	}
	var sum float64
	for j, sj := range s.S {
		if sj > 0 {
			a := s.UA[j] / sj
			sum += a*s.UA[j] - 2*a*s.UC[j] + s.UC2[j]
		}
	}
	return math.Sqrt(max(0, min(1, sum/s.W)))
}

// SoftNorm is the P-norm over so many soft bins at a temperature.
type SoftNorm struct {
	Bins           int
	Temperature, P float64
}

// SBECELBRows returns SB-ECE_lb for any p ≥ 1, which needs the rows a second time:
//
//	(1/W Σ_i Σ_j w_i u_ij |A_j - c_i|^p)^(1/p)
//
// with the memberships of SoftWeights; w may be nil. NaN where W = 0.
func SBECELBRows(c []float64, a []bool, w []float64, of SoftNorm) float64 {
	s := SoftBins(c, a, w, of.Bins, of.Temperature)
	if !(s.W > 0) {
		return math.NaN()
	}
	u, n := make([]float64, of.Bins), normOf(of.P)
	for i, ci := range c {
		SoftWeights(u, ci, of.Temperature)
		wi := weight(w, i)
		for j, uj := range u {
			if uj *= wi; uj > 0 {
				n.add(math.Abs(s.UA[j]/s.S[j]-ci), uj)
			}
		}
	}
	return n.mean(s.W)
}

// norm sums Σ w |gap|^p relative to the largest gap so far: gaps are below 1, and of a large p no power would be left.
type norm struct{ p, largest, sum float64 }

func normOf(p float64) norm { return norm{p: p} }

func (n *norm) add(gap, w float64) {
	switch {
	case gap > n.largest:
		n.sum = n.sum*math.Pow(n.largest/gap, n.p) + w
		n.largest = gap
	case gap > 0:
		n.sum += w * math.Pow(gap/n.largest, n.p)
	}
}

// mean returns (Σ w gap^p / W)^(1/p).
func (n *norm) mean(w float64) float64 { return n.largest * math.Pow(min(1, n.sum/w), 1/n.p) }
