// Package offline evaluates, fits and applies calibrators on files, without a stream.
//
// It turns tables into rows for package metric and names the row and column of invalid values. It evaluates the slices
// of a column, prepares the held-out rows for package compare, and scores heads. It chooses the methods and settings of
// a fit, writes reports as text, and reads and writes calibrator files. Errors name the flags of `plumbline eval`,
// `fit` and `apply`.
//
// The computations are in calib. The package must not know command lines: it gets the values of flags.
package offline
