package metric

// Bin holds the top-label sums of one bin: N rows, W = Σw, SumC = Σ w·c, SumA = Σ w·a (w = 1 unless weighted).
//
// W2 = Σw² tells how much the weights vary; 0 where it is not known (the accumulators of a stream don't keep it),
// and then N stands for the number of independent rows.
type Bin struct {
	N             int64
	W, SumC, SumA float64
	W2            float64
}

// SoftSums are the soft-bin sums of Karandikar et al., Eq. 8-12, by soft bin j: S = Σ w u_j, UC = Σ w u_j c,
// UA = Σ w u_j a, UC2 = Σ w u_j c²; W = Σ w over all rows.
type SoftSums struct {
	W              float64
	S, UC, UA, UC2 []float64
}

// EffectiveN returns Kish's effective number of rows, (Σw)²/Σw²: how many rows of equal weight have a mean that is
// as certain. It is N where all weights are equal, and where Σw² is not known.
// Reference: Kish, Survey Sampling, 1965, section 11.7.
func (b Bin) EffectiveN() float64 {
	if !(b.W2 > 0) {
		return float64(b.N)
	}
	return b.W * (b.W / b.W2)
}

// Conf returns the mean confidence SumC/W; NaN in an empty bin.
func (b Bin) Conf() float64 { return b.SumC / b.W }

// Acc returns the accuracy SumA/W; NaN in an empty bin.
func (b Bin) Acc() float64 { return b.SumA / b.W }

func (b *Bin) add(c float64, a bool, w float64) {
	b.N++
	b.W += w
	b.W2 += w * w
	b.SumC += w * c
	if a {
		b.SumA += w
	}
}

// plus adds share times the sums of o; N is the caller's.
func (b *Bin) plus(o Bin, share float64) {
	b.W += share * o.W
	b.W2 += share * share * o.W2
	b.SumC += share * o.SumC
	b.SumA += share * o.SumA
}

// Sum returns the bin of all rows: its Conf is their mean confidence, its Acc their accuracy.
func Sum(bins []Bin) Bin {
	var all Bin
	for _, b := range bins {
		all.N += b.N
		all.plus(b, 1)
	}
	return all
}

// Total returns Σ W_b, the weight of all rows.
func Total(bins []Bin) float64 {
	var w float64
	for _, b := range bins {
		w += b.W
	}
	return w
}

func weight(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

// unlessUnit returns w, or nil where every weight is 1: weights of 1 then take the very steps of no weights.
func unlessUnit(w []float64) []float64 {
	for _, v := range w {
		if v != 1 {
			return w
		}
	}
	return nil
}

func checkLengths(c []float64, a []bool, w []float64) {
	if len(a) != len(c) || (w != nil && len(w) != len(c)) {
		panic("metric: c, a and w differ in length")
	}
}
