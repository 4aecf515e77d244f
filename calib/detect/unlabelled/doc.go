// Package unlabelled has statistics of predictions before their labels come: how far the distribution of a confidence
// score has moved (Distances), and estimates of accuracy and calibration error, each under an assumption:
//
//	ConfidenceBased  P(right | confidence) is as it was (no concept drift); covariates may drift
//	CorrectnessShift P(confidence | right or wrong) is as it was; only the share of right predictions has moved
//
// Estimates from class shares are in package shift. Nothing here sees a model that becomes wrong at unchanged
// confidences: that needs labels and package detect. The package gets counts by bin; it must not know windows or rules.
package unlabelled
