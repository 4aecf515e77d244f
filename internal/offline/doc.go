// Package offline evaluates, fits and applies calibrators on files, without a stream.
//
// It turns tables into rows for package metric and names the row and column of invalid values. It evaluates the slices
// of a column, prepares the held-out rows for package compare, and scores heads. It also reads and writes calibrator
// files. The computations are in calib; flags and printing are in cmd/plumbline.
package offline
