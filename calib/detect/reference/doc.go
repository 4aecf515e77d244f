// Package reference compares a window of labelled rows with a reference window, pinned or rolling: calibration curves,
// ECE (debiased, smooth), accuracy and NLL, each difference with an interval. The intervals hold for one evaluation of
// windows that share no rows; package detect has the tests that may be evaluated all the time. Rules of kind reference
// use it. It must not know rules or windows of a stream.
//
//	before := reference.Window{Bins: b0, Cells: g0.Groups(), NLL: n0}
//	d, err := reference.Compare(before, reference.Window{…})
//	if d.Accuracy.Hi < -.02 { … }  // worse by more than two points
package reference
