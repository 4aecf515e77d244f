// Package calib is the mathematics of calibration: row kernels (kernel), mergeable fixed-point accumulators
// (acc), metrics (metric) and calibrators (calibrator). It does no I/O, reads no clock, starts no goroutine.
package calib
