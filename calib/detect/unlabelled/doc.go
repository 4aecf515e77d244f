// Package unlabelled holds what can be said before labels come: how far the distribution of a confidence score has
// moved (Distances), and what accuracy and calibration error that means under an assumption, which each estimate names:
//
//	ConfidenceBased  P(right | confidence) is as it was (no concept drift); covariates may drift
//	CorrectnessShift P(confidence | right or wrong) is as it was; only the share of right predictions has moved
//
// What the shares of the classes say is in package shift.
//
// None of them can see a model that becomes wrong at the same confidences: for that there are labels and package
// detect.
package unlabelled
