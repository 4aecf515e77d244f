// Package calib is the mathematics of calibration: row kernels (kernel), mergeable fixed-point accumulators
// (acc), metrics (metric), calibrators (calibrator) and their ONNX models (onnx), and sequential detection (detect). It
// does no I/O, reads no clock, starts no goroutine.
package calib
