// Package evalue decides from e-values: which of many slices are off (EBH), and whether a candidate is better than the
// calibrator in force (Paired, ECERadius). Its results hold at whatever times they are read (docs/math.md, "Many
// slices, one candidate"). It must not know calibrators or slices: it gets e-values and gains.
//
//	bad := evalue.EBH(logE, .05)            // logE[i] of a detect.Detector with Ever set, one a slice
//	test, err := evalue.NewPaired(6.9, 0)   // gains in NLL, probabilities floored at e^-6.9
//	for each new row: err = test.Add(nllOfOld - nllOfNew)
//	publish when test.LogE() ≥ log(1/.05)
package evalue
