// Package metric computes the metrics of calibration, of probabilistic accuracy and of selective prediction.
//
// In come rows (n×K logits or probabilities and n labels) and out comes a Report (Evaluate); or, for the
// pieces, the confidences c and the outcomes a = 1[ŷ = y], from which
//
//   - EqualWidth and EqualMass make bins, and ECE, ECEL2, MCE, DebiasedL2, Reliability and Resample read them;
//   - SortWeighted makes the ascending order that KS, Sweep, AURC, RiskCoverage, AUROC and FPR95 read;
//   - SoftBins makes the sums that SBECEBin and SBECELB read; SmECE needs neither;
//   - Cells makes groups of about equal confidence, and the functions that end in Cells read them.
//
// Basic is the part of Evaluate that needs no sort.
//
// The accumulators of a stream hold the same bins, cells and sums, so the same functions serve there. Everything is
// O(n log n), float64, deterministic and pure. A metric that is undefined (no rows, one outcome only) is NaN,
// which is null in JSON. Symbols: n rows, K classes, M bins, c confidence, a correctness, w weight.
package metric
