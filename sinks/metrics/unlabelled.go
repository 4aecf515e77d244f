package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/record"
)

var (
	distanceLabels = append(slices.Clone(keyLabels), "score", "distance")
	methodLabels   = append(slices.Clone(keyLabels), "method")

	descDistance = desc("confidence_distance",
		"Distance of a confidence score of the latest window's predictions from its reference.", distanceLabels...)
	descDistanceBound = desc("confidence_distance_threshold",
		"What that distance exceeds with probability unlabelled.alpha if nothing has changed.", distanceLabels...)
	descEstimate = desc("estimated_accuracy_ratio",
		"Accuracy of the latest window's predictions, estimated without their labels.", methodLabels...)
	descEstimateLo = desc("estimated_accuracy_lower_ratio",
		"Lower end of its 95 % interval if the method's assumption holds.", methodLabels...)
	descEstimateHi = desc("estimated_accuracy_upper_ratio",
		"Upper end of its 95 % interval if the method's assumption holds.", methodLabels...)
	descEstimateECE = desc("estimated_ece_ratio", "ECE of the raw confidence, estimated without labels.",
		methodLabels...)
	descEstimateMiss = desc("estimate_miss_ratio",
		"Estimated accuracy less what the labelled rows of the same window show.", methodLabels...)
	descClassDistance = desc("class_share_distance",
		"Distance of the shares of predicted classes of the latest window from those of the reference.",
		append(slices.Clone(keyLabels), "distance")...)
	descClassBound = desc("class_share_distance_threshold",
		"What that distance exceeds with probability unlabelled.alpha if nothing has changed.",
		append(slices.Clone(keyLabels), "distance")...)
	descShift = desc("label_shift_distance",
		"Total variation of the estimated shares of the classes from those of the reference.", methodLabels...)
	descShiftP = desc("label_shift_p_value",
		"P-value of the test of the label-shift assumption: "+
			"where it is small, the method's estimates are not to be believed.", methodLabels...)
	descEstimateMissSE = desc("estimate_miss_standard_errors",
		"The same in standard errors: beyond 3 the method's assumption has failed.", methodLabels...)
)

// collectUnlabelled shows what a window says before labels.
func collectUnlabelled(ch chan<- prometheus.Metric, u *record.Unlabelled, key []string) {
	with := func(more ...string) []string { return append(slices.Clone(key), more...) }
	for score, d := range u.Distances {
		for name, x := range map[string]record.Distance{"ks": d.KS, "wasserstein": d.Wasserstein, "psi": d.PSI,
			"js": d.JensenShannon} {
			gauge(ch, descDistance, x.Value, with(score, name)...)
			gauge(ch, descDistanceBound, x.Threshold, with(score, name)...)
		}
	}
	for i := range u.Estimates {
		e := &u.Estimates[i]
		labels := with(methodLabel(e.Method))
		optional(ch, descEstimate, e.Accuracy, labels...)
		optional(ch, descEstimateLo, e.Lo, labels...)
		optional(ch, descEstimateHi, e.Hi, labels...)
		optional(ch, descEstimateECE, e.ECE, labels...)
		if e.Miss != nil {
			gauge(ch, descEstimateMiss, e.Miss.Difference, labels...)
			gauge(ch, descEstimateMissSE, e.Miss.Z, labels...)
		}
	}
	if r := u.Range; r != nil {
		gauge(ch, descEstimateLo, r.Lo, with("range")...)
		gauge(ch, descEstimateHi, r.Hi, with("range")...)
	}
	c := u.Classes
	if c == nil {
		return
	}
	for name, x := range map[string]*record.Distance{"psi": c.PSI, "js": c.JensenShannon} {
		if x != nil {
			gauge(ch, descClassDistance, x.Value, with(name)...)
			gauge(ch, descClassBound, x.Threshold, with(name)...)
		}
	}
	for i := range c.Shifts {
		s := &c.Shifts[i]
		labels := with(methodLabel(s.Method))
		gauge(ch, descShift, s.Distance, labels...)
		gauge(ch, descShiftP, s.P, labels...)
	}
}

// methodLabel is a method's name as a label.
func methodLabel(method string) string {
	switch method {
	case "confidence-based":
		return "confidence"
	case "correctness shift (BBSE)":
		return "correctness_shift"
	case "label shift (BBSE)":
		return "label_shift"
	case "label shift (EM)":
		return "label_shift_em"
	}
	return method
}
