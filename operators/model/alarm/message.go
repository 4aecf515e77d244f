package alarm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// shownBins is how many bins a message names; the evidence has all.
const shownBins = 3

// sinceStart is the window of an alert whose figures are of all rows since its start.
const sinceStart = "since the estimated start"

// lastRows is the window of an alert whose figures are of its latest rows.
func lastRows(n int64) string { return fmt.Sprintf("last %d rows", n) }

// rowsOf says which rows the figures of an alert are of.
func rowsOf(a *record.Alert) string {
	if a.Window == sinceStart {
		return fmt.Sprintf("%d %s since", a.Rows, stage.RowsOf(a.Signal))
	}
	return fmt.Sprintf("latest %d %s", a.Rows, stage.RowsOf(a.Signal))
}

// message says what an alarm has found, in words for those who know no e-values. bins are of the rows that the alert's
// figures are of.
func (a *keyAlarm) message(out *record.Alert, bins []metric.Bin) string {
	if a.signal == stage.SignalAccuracy {
		return accuracyMessage(out)
	}
	return errorMessage(out, bins)
}

func errorMessage(a *record.Alert, bins []metric.Bin) string {
	e := a.Evidence
	how := fmt.Sprintf("%s confidence is %s", a.Signal, e.Direction)
	if e.Reference != "" {
		how = fmt.Sprintf("%s confidence has changed against its %s reference: %s", a.Signal, e.Reference, e.Direction)
	}
	text := fmt.Sprintf("%s since about %s", how, e.Since.About())
	if a.Accuracy != nil {
		text += fmt.Sprintf(": mean confidence %.3f, accuracy %.3f, ECE %.4f on the %s", *a.MeanConfidence, *a.Accuracy,
			a.ECE, rowsOf(a))
	}
	text += fmt.Sprintf(". A model inside the tolerance (%s) shows this %s", tolerance(e), e.ByChance)
	return text + worst(ofRows(e.Bins, bins)) + worstClasses(e.Classes)
}

// tolerance says what the tests that fired allow.
func tolerance(e *record.AlertEvidence) string {
	var of []string
	for _, t := range e.Tests {
		switch t {
		case "ece":
			of = append(of, fmt.Sprintf("ECE %g", e.EpsilonECE))
		case "bin":
			of = append(of, fmt.Sprintf("each bin %g", e.EpsilonBin))
		case "class":
			of = append(of, fmt.Sprintf("each predicted class %g", e.EpsilonClass))
		}
	}
	return strings.Join(of, ", ")
}

// worstClasses names the predicted classes with the most evidence.
func worstClasses(classes []record.EvidenceClass) string {
	if len(classes) == 0 {
		return ""
	}
	most := slices.Clone(classes)
	slices.SortStableFunc(most, func(a, b record.EvidenceClass) int { return cmp.Compare(b.LogE, a.LogE) })
	var which []string
	for _, c := range most[:min(len(most), shownBins)] {
		which = append(which, fmt.Sprintf("%d by %+.3f", c.Class, c.Gap))
	}
	text := "; predicted class " + strings.Join(which, ", ")
	if more := len(most) - shownBins; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ofRows returns the bins of the evidence with what the rows of the message's other figures say of them. The evidence
// itself is of the rows that the tests remember, some of which came before the error. Bins without such rows stay.
func ofRows(evidence []record.EvidenceBin, bins []metric.Bin) []record.EvidenceBin {
	out := slices.Clone(evidence)
	for i := range out {
		e, j := &out[i], int(math.Round(out[i].Lo*float64(len(bins))))
		if j < len(bins) && bins[j].W > 0 && math.Abs((e.Hi-e.Lo)*float64(len(bins))-1) < 1e-6 {
			e.N, e.Gap = bins[j].W, bins[j].Acc()-bins[j].Conf()-e.Reference
		}
	}
	return out
}

// worst names the bins that add most to the error, rows times gap; a gap is accuracy less confidence.
func worst(bins []record.EvidenceBin) string {
	if len(bins) == 0 {
		return ""
	}
	heaviest := slices.Clone(bins)
	slices.SortStableFunc(heaviest, func(a, b record.EvidenceBin) int {
		return cmp.Compare(b.N*math.Abs(b.Gap), a.N*math.Abs(a.Gap))
	})
	var where []string
	for _, b := range heaviest[:min(len(heaviest), shownBins)] {
		where = append(where, fmt.Sprintf("(%.3g, %.3g] by %+.3f", b.Lo, b.Hi, b.Gap))
	}
	text := "; mostly in " + strings.Join(where, ", ")
	if more := len(heaviest) - shownBins; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// accuracyMessage says how far accuracy is below the reference. It adds the mean confidence of the same rows, which
// shows whether the model expected the fall.
func accuracyMessage(a *record.Alert) string {
	e := a.Evidence
	than := fmt.Sprintf("the %s reference of %.3f", e.Reference, *e.ReferenceAccuracy)
	if e.AccuracyDip > 0 {
		than = fmt.Sprintf("%.3f, the lowest for a while in the %s reference of %.3f on average",
			*e.ReferenceAccuracy-e.AccuracyDip, e.Reference, *e.ReferenceAccuracy)
	}
	if e.AccuracyHard != nil {
		than += fmt.Sprintf(" (while inputs are hard: below what the confidences promise, down to %.3f)",
			*e.AccuracyHard)
	}
	text := fmt.Sprintf("accuracy is more than %.3g below %s since about %s", e.EpsilonAccuracy+e.AccuracySlack, than,
		e.Since.About())
	if a.Accuracy != nil {
		text += fmt.Sprintf(": %.3f on the %s, whose mean confidence is %.3f", *a.Accuracy, rowsOf(a),
			*a.MeanConfidence)
	}
	return text + ". Without such a fall this comes " + e.ByChance
}

// resolution says why an alert ended.
func (a *keyAlarm) resolution(s *spec) string {
	what, twice := a.signal+" calibration error is back inside the tolerance", "an error"
	within := fmt.Sprintf("ECE beyond chance %g, bins %g", s.EpsilonECE, s.EpsilonBin)
	if a.fired != nil && a.fired.Class {
		within += fmt.Sprintf(", predicted classes %g", s.EpsilonClass)
	}
	if a.signal == stage.SignalAccuracy {
		what, twice = "accuracy is no longer below the reference by more than the tolerance", "a fall"
		within = fmt.Sprint(s.EpsilonAccuracy)
	}
	if a.unshown {
		return fmt.Sprintf("not shown again in %d rows, as %s of twice the tolerance (%s) would have been: a smaller "+
			"one may be left", s.QuietRows, twice, within)
	}
	text := fmt.Sprintf("%s (%s) on the latest rows", what, within)
	if a.hard != nil && a.curve.inForce != nil && a.hard.fall.shown(s.EpsilonAccuracy+a.curve.inForce.AccuracySlack) {
		text += ". The confidences showed that inputs were hard: where they show it again, that is no news"
	}
	return text
}

// byChance says how seldom evidence comes where nothing is wrong. The sum of a whole model reaches m = e^log at most
// once in m label panes on average (docs/math.md, Theorem 1), the e-value of a slice with probability 1/m at most
// (Theorem 2).
func byChance(log float64, slice bool, pane time.Duration) string {
	m := math.Exp(max(log, 0))
	if slice {
		return "with a probability of at most 1 in " + rounded(m)
	}
	return "at most once in " + span(m*pane.Seconds())
}

// rounded is m with two digits, in words that are read at once.
func rounded(m float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " billion"}, {1e6, " million"}} {
		switch {
		case m >= 1000*u.size:
			return "over 1,000" + u.name
		case m >= u.size:
			return twoDigits(m/u.size) + u.name
		}
	}
	return twoDigits(m)
}

// span is a time of some seconds with two digits.
func span(seconds float64) string {
	const minute, hour, day, year = 60, 60 * 60, 24 * 60 * 60, 365.25 * 24 * 60 * 60
	switch {
	case seconds >= 1000*year:
		return "over 1,000 years"
	case seconds >= 2*year:
		return twoDigits(seconds/year) + " years"
	case seconds >= 2*day:
		return twoDigits(seconds/day) + " days"
	case seconds >= 2*hour:
		return twoDigits(seconds/hour) + " hours"
	}
	return twoDigits(seconds/minute) + " minutes"
}

// rounding keeps e^ln 20 at 20.
const rounding = 1e-9

// twoDigits rounds x ≥ 0 down to two digits: a bound must not be rounded up.
func twoDigits(x float64) string {
	if x < 10 {
		return strconv.FormatFloat(math.Floor(x*10+rounding)/10, 'f', -1, 64)
	}
	step := 1.0
	for x >= 100*step {
		step *= 10
	}
	n := int(math.Floor(x/step+rounding) * step)
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return strconv.Itoa(n)
}
