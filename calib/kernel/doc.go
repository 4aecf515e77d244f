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
//
// LogitRows and ProbRows take many rows of float32 at once. They have vector paths for amd64 (AVX-512; AVX2 with FMA),
// chosen at start by what the processor has, and arm64 (NEON), and plain Go for all else; the build tag purego leaves
// the vector paths out. The fields of LogitRows are within 1e-6 of the exact ones:
//
//	rows, e := make([]kernel.Row, n), make([]float32, n*k)
//	kernel.LogitRows(rows, e, z, k, 1) // p_ij = float64(e[i*k+j])·rows[i].Scale
//
// # The same bits everywhere
//
// All paths do the same operations in one order, so that sums and the hashes of states agree across machines:
//
//   - e' = 2^(z·L - m), L = log2(e)/t as a float32 pair, m the integer nearest to max·L: float32, fused multiply-adds.
//     Plain Go rounds float64 products and sums to odd where rounding twice would differ. e = e'·(1/e' of the maximum).
//   - Elements equal to the maximum are counted, not summed: Conf is 1/(count + Σe), a uniform row has exactly 1/K.
//   - K < 64: a row's Σe', Σ(z-max)e' and Σe'² are summed in the order of its elements, in float32 for 16 elements,
//     then added to a float64.
//   - K ≥ 64: element j belongs to lane j mod 16. Where 16 does not divide K, the last K mod 16 elements come first,
//     in the last lanes. After each 16 vectors lanes j and j+8 are added, in this order, to the j-th of 8 float64;
//     those are summed as ((0+4)+(2+6)) + ((1+5)+(3+7)).
//   - Probabilities: Σq is float64, in the order of the elements for K < 64, else in lane j mod 8 and then as above.
//     -Σ q ln q and Σq² are float32 sums, flushed as above, but the last K mod 16 elements come last, in the first
//     lanes, and are flushed by themselves. ln is a float32 polynomial of degree 9 by fused multiply-adds.
//     What is at most 2^-120 is left out of the three sums. Conf, Second and Scale are float64 quotients.
//   - The rest is float64: IEEE operations, explicit fused multiply-adds, and the package's own exp and ln. No result
//     comes from math.Exp or math.Log, which differ between architectures.
//
// A golden hash in the tests holds this on amd64 (three paths), on arm64 (two) and in plain Go on loong64, ppc64le,
// riscv64 and s390x. It cannot hold where the compiler or the processor departs from IEEE 754: 387 code, and subnormal
// numbers flushed to zero by a host process. What is left undefined, all but OK of a refused row, may differ.
package kernel
