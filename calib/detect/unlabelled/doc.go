// Package unlabelled holds what can be said before labels come: how far the distribution of a confidence score has moved
// (Distances), and what accuracy and calibration error that means under an assumption, which each estimate names:
//
//	ConfidenceBased  P(right | confidence) is as it was (no concept drift); covariates may drift
//	LabelShift, EM   P(input | class) is as it was; only the shares of the classes have moved
//
// None of them can see a model that becomes wrong at the same confidences: for that there are labels and package detect.
package unlabelled
