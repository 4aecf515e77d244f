// Package compare scores calibration methods on rows that they were not fitted on.
//
// Its input is labelled rows, parts that say which rows each fit may see (Split, Folds, or two files), and candidates.
// Run returns a Result for each candidate: the metrics of the held-out rows, and the difference in NLL from the
// uncalibrated model, row by row, with an interval. Rank orders the results. Everything depends only on the rows and
// the seed.
//
// Rows come from internal/offline, and results go to `plumbline fit`. The package must not know files, flags or how a
// method fits: it takes methods by their names (package calibrator).
package compare
