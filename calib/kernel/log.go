package kernel

// Log returns ln x for x ≥ 0, subnormal numbers included. math.Log is wrong for those on amd64
// (Go 1.26: ln 2^-1074 comes out as -709.1, not -744.4), and probabilities do get that small. Log gives the same bits
// on every architecture.
func Log(x float64) float64 {
	return ln(x)
}

// LogProb returns ln q of a probability q ≥ 0, with 0 taken as the smallest positive value of the input type
// (2^-149 or 2^-1074), so that it is finite. softmax of the log-probabilities is q again.
func LogProb[T Float](q T) float64 {
	if q <= 0 {
		return Log(smallest[T]())
	}
	return Log(float64(q))
}

// LogProbs replaces probabilities by their logarithms, LogProb of each.
func LogProbs(q []float32) {
	for k := range q {
		q[k] = float32(LogProb(q[k]))
	}
}
