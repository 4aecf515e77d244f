package metric

// Bin holds the top-label sums of one bin: N rows, W = Σw, SumC = Σ w·c, SumA = Σ w·a (w = 1 unless weighted).
type Bin struct {
	N             int64
	W, SumC, SumA float64
}

// SoftSums are the soft-bin sums of Karandikar et al., Eq. 8-12, by soft bin j: S = Σ w u_j, UC = Σ w u_j c,
// UA = Σ w u_j a, UC2 = Σ w u_j c²; W = Σ w over all rows.
type SoftSums struct {
	W              float64
	S, UC, UA, UC2 []float64
}
