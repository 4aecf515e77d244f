// Package offline evaluates, fits and applies calibrators on files, without a stream.
//
// It turns tables into rows for package metric, names the row and the column of what is not allowed, evaluates the
// slices of a column, prepares what compare holds out, and scores heads. Calibrator files are read and written here.
// The computations are in calib; flags and printing are in cmd/plumbline.
package offline
