package alarm

import (
	"math"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Kind is the kind of the alerts of this package.
const Kind = "anytime"

// describe returns the record of a state change. While the alarm fires, its value is the log evidence of the test that
// fired. When it is resolved, the value is 0, because the tests started again.
func (t *Stage) describe(k *stage.Key, a *keyAlarm, state string, c *stage.Closing, slices int) *record.Alert {
	spec := t.cfg
	since := a.alert.Since
	if state == stage.Resolved {
		since = a.alert.LastChange
	}
	bins, rows, earlier := k.Recent.After(a.confidence(), a.seen)
	out := &record.Alert{
		Schema:   1,
		Model:    k.Version.Model,
		Version:  k.Version.Name,
		Slice:    k.Slice,
		Rule:     spec.rule(a.signal),
		Kind:     Kind,
		Measure:  "log_e",
		Severity: spec.severity(a.signal),
		State:    state,
		Since:    record.At(since),
		At:       record.At(c.End),
		Signal:   a.confidence(),
		Rows:     rows,
		Window:   sinceStart,
	}
	if rows >= Rows && !earlier {
		out.Window = lastRows(rows)
	}
	if rows > 0 {
		stage.SetFigures(out, bins, metric.Resample(bins, t.env.Resamples, k.Seed(a.signal, c.Index)))
	}
	out.Diagram = t.env.Diagram(k, out.At)
	if state == stage.Resolved {
		out.Threshold = -math.Log(spec.alpha())
		out.Message = a.resolution(spec)
		return out
	}
	e := t.evidence(k, spec, a, c.End, since)
	e.Slices = slices
	if a.slice {
		e.FDR = spec.FDR
		out.Threshold = math.Log(float64(max(slices, 1)) / spec.FDR)
		out.Value = stage.FiniteOrZero(a.logE())
	} else {
		out.Value, out.Threshold = e.LogE, e.Threshold
		switch {
		case a.fired.ECE:
		case a.fired.Bin:
			out.Value, out.Threshold = e.LogEBin, e.ThresholdBin
		case a.fired.Class:
			out.Value, out.Threshold = e.LogEClass, e.ThresholdClass
		}
	}
	e.ByChance = byChance(out.Value, a.slice, time.Duration(t.env.Pane))
	out.Evidence = e
	out.Message = a.message(out, bins)
	t.warn(k, out, "")
	return out
}

// evidence describes why an alarm fired.
func (t *Stage) evidence(k *stage.Key, spec *spec, a *keyAlarm, end, since int64) *record.AlertEvidence {
	if a.fired.Accuracy {
		return a.accuracyEvidence(spec, since)
	}
	head, diag := a.fired.Headline, a.fired.Diagnosis
	e := &record.AlertEvidence{
		Tests:        []string{},
		EpsilonECE:   head.Epsilon,
		EpsilonBin:   diag.Epsilon,
		LogE:         stage.FiniteOrZero(head.LogE),
		LogEBin:      stage.FiniteOrZero(diag.LogE),
		Threshold:    head.Threshold,
		ThresholdBin: diag.Threshold,
		Since:        record.At(since),
		Reference:    spec.reference(a.signal),
		Bins:         []record.EvidenceBin{},
	}
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
		out := record.EvidenceBin{
			Lo:         b.Lo,
			Hi:         b.Hi,
			N:          b.Recent.N,
			Confidence: b.Recent.Confidence,
			Accuracy:   b.Recent.Accuracy,
			Gap:        b.Recent.Gap,
			Reference:  b.Reference,
			LogE:       b.LogE,
		}
		if b.LogE > 0 {
			out.Since = record.At(k.Resumed(min(b.Since, end-t.env.Pane)-a.delay, t.env.Pane))
		}
		e.Bins = append(e.Bins, out)
	}
	e.Direction = direction(net, all)
	t.classEvidence(k, a, end, e)
	return e
}

// classEvidence adds what the test by class says. Where it alone fired, the direction is that of its classes.
func (t *Stage) classEvidence(key *stage.Key, a *keyAlarm, end int64, e *record.AlertEvidence) {
	f := a.fired.Classes
	if f == nil {
		return
	}
	e.EpsilonClass, e.LogEClass, e.ThresholdClass = f.Epsilon, stage.FiniteOrZero(f.LogE), f.Threshold
	if !a.fired.Class {
		return
	}
	e.Tests = append(e.Tests, detect.NullClass.String())
	var net, all float64
	off := named(f)
	for k, b := range f.Bins {
		if off>>k&1 == 0 {
			continue
		}
		net += b.Recent.N * b.Recent.Gap
		all += b.Recent.N * math.Abs(b.Recent.Gap)
		e.Classes = append(e.Classes, record.EvidenceClass{
			Class:      k,
			N:          b.Recent.N,
			Confidence: b.Recent.Confidence,
			Accuracy:   b.Recent.Accuracy,
			Gap:        b.Recent.Gap,
			LogE:       b.LogE,
			Since:      record.At(key.Resumed(min(b.Since, end-t.env.Pane)-a.delay, t.env.Pane)),
		})
	}
	if len(e.Tests) == 1 {
		e.Direction = direction(net, all)
	}
}

// direction sums up the gaps of all bins, weighted by their rows. It names one side if that side holds at least three
// quarters of the total.
func direction(net, all float64) string {
	switch {
	case net <= -all/2:
		return "overconfident"
	case net >= all/2:
		return "underconfident"
	}
	return "off both ways"
}
