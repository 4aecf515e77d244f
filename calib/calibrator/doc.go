// Package calibrator maps logits to calibrated probabilities, and fits such maps.
//
// In come n×K logits and n labels; FitTemperature returns a Temperature and a FitReport that says how the fit
// went. A Calibrator is immutable, so one may serve many goroutines. Encode and Decode carry it as JSON:
//
//	t, report, err := calibrator.FitTemperature(z, k, y, nil, calibrator.Options{})
//	t.Apply(p, row)                  // p = softmax(row/T)
//	text, err := calibrator.Encode(t) // {"version":1,"method":"temperature","temperature":2.03}
//
// The other methods have a Fit of their own, which returns a Report with warnings. What they keep:
//
//	FitTemperature, FitTemperatureSBECE, FitEnsemble   every argmax
//	FitClassTemperature, FitVector, FitMatrix, FitDirichlet   nothing; they need rows of the fitted K
//	FitPlatt, FitBeta, FitIsotonic, FitHistogram, FitScalingBinning   the ranking of all but the top class (see Scalar)
//
// Matrix and Dirichlet have K² parameters: seconds to fit at K = 10, minutes at K = 100 and 5,000 rows.
//
// Whether a fitted calibrator is better is not decided here: score it on rows that it was not fitted on.
package calibrator
