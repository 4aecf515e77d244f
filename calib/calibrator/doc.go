// Package calibrator maps logits to calibrated probabilities, and fits such maps.
//
// In come n×K logits and n labels; FitTemperature returns a Temperature and a FitReport that says how the fit
// went. A Calibrator is immutable, so one may serve many goroutines. Encode and Decode carry it as JSON:
//
//	t, report, err := calibrator.FitTemperature(z, k, y, nil, calibrator.Options{})
//	t.Apply(p, row)                  // p = softmax(row/T)
//	text, err := calibrator.Encode(t) // {"version":1,"method":"temperature","temperature":2.03}
//
// Whether a fitted calibrator is better is not decided here: score it on rows that it was not fitted on.
package calibrator
