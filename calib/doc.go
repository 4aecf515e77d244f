// Package calib is the mathematics of calibration: row kernels (kernel), mergeable fixed-point accumulators (acc),
// metrics (metric), calibrators (calibrator) and their ONNX models (onnx), methods compared (compare), sequential
// detection (detect) and label shift (shift).
//
// The packages do no I/O and read no clock; only compare starts goroutines. From outside of calib they import only
// internal/binenc and internal/vexp.
package calib
