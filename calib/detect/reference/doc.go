// Package reference compares a window of labelled rows with a reference window, pinned or rolling: calibration curves,
// ECE (debiased, smooth), accuracy and NLL, each difference with an interval. These are the threshold rules that people
// know; they hold for one look at windows that share no rows. For alarms that may look all the time there is package
// detect.
//
//	before := reference.Window{Bins: b0, Cells: g0.Groups(), NLL: n0}
//	d, err := reference.Compare(before, reference.Window{…}, reference.Options{Seed: seed})
//	if d.Accuracy.Hi < -.02 { … }  // worse by more than two points
package reference
