package model

import (
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Kinds of alerts.
const (
	kindAnytime = "anytime"
	kindExcess  = "excess"

	kindReference = "reference"
	kindDistance  = "distance"
	kindEstimate  = "estimate"
)

// alarmAlert describes a change of an alarm. While it fires value is the log evidence of the test that fired; once
// resolved it is 0, as the tests began anew.
func (t *ModelTask) alarmAlert(v *version, k *keyState, a *keyAlarm, state string, in *paneInput, slices int) *record.Alert {
	spec := t.cfg.Alarm
	since := a.alert.since
	if state == resolved {
		since = a.alert.lastChange
	}
	bins, rows := k.recent.after(a.confidence(), since)
	out := &record.Alert{Schema: 1, Model: v.model, Version: v.name, Slice: k.slice, Rule: spec.rule(a.signal), Kind: kindAnytime, Measure: "log_e",
		Severity: spec.severity(a.signal), State: state, Since: pipeline.Format(since), At: pipeline.Format(in.end), Signal: a.confidence(), Rows: rows, Window: "since the estimated start"}
	if rows > 0 {
		iv := metric.Resample(bins, t.cfg.Resamples, seed(v, k, a.signal, in.pane))
		out.ECE, out.ECENull, out.ECELo, out.ECEHi = metric.ECE(bins), iv.Null, &iv.Lo, &iv.Hi
	}
	out.Diagram = t.diagram(v, k, out.At)
	if state == resolved {
		out.Threshold = -math.Log(spec.alpha())
		out.Message = fmt.Sprintf("%s calibration error is back inside the tolerance (ECE %g, bin %g)", a.signal, spec.EpsilonECE, spec.EpsilonBin)
		if a.signal == signalAccuracy {
			out.Message = fmt.Sprintf("accuracy is no longer more than %g below the reference", spec.EpsilonAccuracy)
		}
		return out
	}
	e := t.alarmEvidence(spec, a, in.end, since)
	e.Slices = slices
	if a.slice {
		e.FDR = spec.FDR
		out.Threshold = math.Log(float64(max(slices, 1)) / spec.FDR)
		out.Value = jsonNumber(a.logE())
	} else {
		out.Value, out.Threshold = e.LogE, e.Threshold
		if a.fired.Bin && !a.fired.ECE {
			out.Value, out.Threshold = e.LogEBin, e.ThresholdBin
		}
	}
	out.Evidence = e
	out.Message = alarmMessage(out)
	if a.signal == signalAccuracy {
		out.Message = accuracyMessage(out, bins)
	}
	return out
}

func alarmMessage(a *record.Alert) string {
	e := a.Evidence
	var where []string
	for _, b := range e.Bins {
		where = append(where, fmt.Sprintf("(%.3g, %.3g] by %+.3f", b.Lo, b.Hi, b.Gap))
	}
	text := fmt.Sprintf("%s confidence is %s beyond the tolerance (ECE %g, bin %g) since about %s: log evidence %.1f, bound %.1f; ECE %.4f over the %d labelled rows since",
		a.Signal, e.Direction, e.EpsilonECE, e.EpsilonBin, e.Since, a.Value, a.Threshold, a.ECE, a.Rows)
	if len(where) > 0 {
		text += "; off in bins " + strings.Join(where, ", ")
	}
	return text
}

// alarmEvidence is what an alarm knows when it fires.
func (t *ModelTask) alarmEvidence(spec *AlarmSpec, a *keyAlarm, end, since int64) *record.AlertEvidence {
	if a.fired.Accuracy {
		return a.accuracyEvidence(spec, since)
	}
	head, diag := a.fired.Headline, a.fired.Diagnosis
	e := &record.AlertEvidence{Tests: []string{}, EpsilonECE: head.Epsilon, EpsilonBin: diag.Epsilon, LogE: jsonNumber(head.LogE), LogEBin: jsonNumber(diag.LogE),
		Threshold: head.Threshold, ThresholdBin: diag.Threshold, Since: pipeline.Format(since), Reference: spec.Reference, Bins: []record.EvidenceBin{}}
	if a.slice {
		e.Threshold, e.ThresholdBin = 0, 0
	}
	if a.fired.ECE {
		e.Tests = append(e.Tests, detect.NullECE.String())
	}
	if a.fired.Bin {
		e.Tests = append(e.Tests, detect.NullBin.String())
	}
	var net, all float64
	for _, b := range diag.Bins {
		if !(b.Recent.N > 0) {
			continue
		}
		net += b.Recent.N * b.Recent.Gap
		all += b.Recent.N * math.Abs(b.Recent.Gap)
		if b.LogE < convincing && (b.Recent.N < 1 || math.Abs(b.Recent.Gap) <= head.Epsilon) {
			continue
		}
		out := record.EvidenceBin{Lo: b.Lo, Hi: b.Hi, N: b.Recent.N, Confidence: b.Recent.Confidence, Accuracy: b.Recent.Accuracy, Gap: b.Recent.Gap,
			Reference: b.Reference, LogE: b.LogE}
		if b.LogE > 0 {
			out.Since = pipeline.Format(min(b.Since, end-t.cfg.Pane) - spec.Matured)
		}
		e.Bins = append(e.Bins, out)
	}
	e.Direction = direction(net, all)
	return e
}

// direction puts the gaps of all bins, weighed by their rows, into a word: one side has at least three quarters of them.
func direction(net, all float64) string {
	switch {
	case net <= -all/2:
		return "overconfident"
	case net >= all/2:
		return "underconfident"
	}
	return "off both ways"
}

// jsonNumber returns x, or 0 where it is no number that JSON has.
func jsonNumber(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// diagram is the page's path at the reliability diagram of a key at a moment: of its first window by rows, which is of the
// latest rows, else of its first window.
func (t *ModelTask) diagram(v *version, k *keyState, at string) string {
	window := ""
	for i := range t.cfg.Windows {
		if w := &t.cfg.Windows[i]; window == "" || w.Kind == "rows" {
			window = w.Name
			if w.Kind == "rows" {
				break
			}
		}
	}
	return "/?" + url.Values{"model": {v.model}, "version": {v.name}, "slice": {k.slice}, "window": {window}, "at": {at}}.Encode()
}
