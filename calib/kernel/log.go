package kernel

// Log returns ln x for x ≥ 0, subnormal numbers included. math.Log is wrong for those on amd64
// (Go 1.26: ln 2^-1074 comes out as -709.1, not -744.4), and probabilities do get that small. Log gives the same bits
// on every architecture.
func Log(x float64) float64 {
	return ln(x)
}

// LeastProb is the least probability of float32. It stands for 0 in logarithms, of float64 too: a file of float64 has
// the same NLL as its stream, which carries float32.
const LeastProb = 0x1p-149

// LogProb returns ln q of a probability q ≥ 0, with less than LeastProb taken as that, so that it is finite. softmax of
// the log-probabilities is q again, up to LeastProb.
func LogProb[T Float](q T) float64 { return Log(max(float64(q), LeastProb)) }

// LogProbs replaces probabilities by their logarithms, LogProb of each.
func LogProbs(q []float32) {
	for k := range q {
		q[k] = float32(LogProb(q[k]))
	}
}
