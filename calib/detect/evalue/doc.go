// Package evalue holds what is decided from e-values: which of many slices are off (EBH), and whether a candidate may
// replace the calibrator in force (Paired, ECERadius). All of it may be looked at after every row (docs/math.md,
// "Sequential detection").
//
//	bad := evalue.EBH(logE, .05)            // logE[i] of a detect.Detector with Ever set, one a slice
//	test, err := evalue.NewPaired(6.9, 0)   // gains in NLL, probabilities floored at e^-6.9
//	for each new row: err = test.Add(nllOfOld - nllOfNew)
//	publish when test.LogE() ≥ log(1/.05)
package evalue
