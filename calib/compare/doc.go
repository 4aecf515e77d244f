// Package compare scores methods of calibration on rows that they were not fitted on.
//
// In come labelled rows, parts that say which of them each fit may see (Halves, Folds, or two files) and candidates;
// out come, by Run, a Result each: the metrics of the held-out rows, and the NLL less that of the model as it is, row
// by row, with an interval. Rank orders them. Everything is deterministic in the rows and the seed.
package compare
