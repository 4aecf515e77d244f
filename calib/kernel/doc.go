// Package kernel turns one row of K scores into its probabilities and the few numbers that every statistic
// needs of it: the predicted class, its confidence, the runner-up, the entropy, Σp² and the log-partition.
//
// In comes a row of float32 or float64 logits (Logits) or probabilities (Probs) and a scratch slice of K
// float64; out goes a Row, and the scratch holds p. Nothing is allocated and all arithmetic is float64:
//
//	p := make([]float64, k)
//	row, ok := kernel.Logits(z, p)    // ok is false where a score is NaN or infinite
//	nll := kernel.NLL(row, z, y, false)
//	brier := kernel.Brier(row, p[y])
//
// Ties for the maximum go to the lowest index throughout.
package kernel
