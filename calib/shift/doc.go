// Package shift estimates how the shares of the classes have moved, from predictions without labels, and what that does
// to accuracy and calibration. It assumes label shift: P(input | class) is as in a labelled reference, only P(class)
// has moved.
//
// In come counts by symbol, a symbol being all that is looked at of a row: the class that the model says, and the band
// of its confidence (acc.ClassCounts). A Table has, by symbol, the labelled rows of the reference by label and the
// unlabelled rows of now. With A_ij = P(symbol i | class j) of the reference and μ_i the share of symbol i now, label
// shift says
//
//	μ = A q,   q the shares of the classes now,  w = q/p their weights against those of the reference
//
//	t := shift.Table{K: 10, Says: says, Joint: joint, Now: now}
//	e, err := shift.BBSE(t)   // minimum chi-square: q, its errors, a test of μ = A q
//	e, err = shift.EM(t)      // maximum likelihood
//	e, err = shift.EMRows(p, prior) // from the calibrated probabilities of rows
//	shift.Correct(p, p, e.Weights)
//
// A correction has to be right of classes with few rows too. Its weights are drawn towards 1 by how much shares vary at
// all, and whether one has moved is judged by the errors that it would have if not:
//
//	se, err := shift.ErrorsAt(t, nil)                    // where nothing has moved
//	shift.Shrink(e.Weights, v, shift.RatioVariance(ref, now)) // v_j = (se_j/p_j)²; ref, now: rows by predicted class
//	moved, err := e.Moved(t, e.Reference, .01)
//
// Of more than MaxClasses classes a Pool takes some together.
//
// With one symbol a class BBSE is black-box shift estimation, w = C⁻¹μ. More symbols than classes make the estimate
// sharper, and testable: where the assumption fails, no q explains μ, and Fit.P says so.
package shift
