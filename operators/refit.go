package operators

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// RefitSpec is when and how calibrators are refitted.
type RefitSpec struct {
	Method               string
	Period, Cooldown     int64
	OnAlarm              bool
	FreshRows            int
	MinRows, MaxRows     int
	TestShare, Z         float64
	MinNLLGain           float64 // nats
	MaxECERise, MaxAccDr float64
}

// refitState is when a version was last refitted (event time) and how many calibrators it has had.
type refitState struct {
	period   int64 // index of the period of the last refit by period
	started  bool
	alarmAt  int64 // end of the pane of the last refit on alarm; 0 = none
	revision int
	last     []byte // the last decision, published or not, as JSON
}

// Reasons of a refit.
const (
	reasonPeriod = "period"
	reasonAlarm  = "alarm"
)

// maybeRefit decides at the end of a label pane whether to refit now. On an alarm it waits until FreshRows
// sampled rows have come since the alarm's start, and uses those only: rows from before the change would pull
// the fit back. While an alarm fires there is no refit by period.
func (t *ModelTask) maybeRefit(v *version, k *keyState, in *paneInput) error {
	spec := &t.cfg.Refit
	if spec.Method == "none" || spec.Method == "" {
		return nil
	}
	if since, any := k.firingSince(); any && spec.OnAlarm {
		if v.refit.alarmAt != 0 && in.end-v.refit.alarmAt < spec.Cooldown {
			return nil
		}
		if f := v.newest(); f != nil && f.reason == reasonAlarm {
			since = max(since, f.from)
		}
		rows := rowsSince(k.sample, since)
		if len(rows) < spec.FreshRows {
			return nil
		}
		v.refit.alarmAt = in.end
		// It is the refit of its period too: the next by period does not follow on its heels.
		v.refit.started, v.refit.period = true, pipeline.PaneIndex(in.end, max(spec.Period, 1))
		return t.refit(v, k, rows, reasonAlarm, in.end)
	}
	if spec.Period <= 0 {
		return nil
	}
	period := pipeline.PaneIndex(in.end, spec.Period)
	if !v.refit.started {
		v.refit.started, v.refit.period = true, period
	}
	if period == v.refit.period || len(k.sample) < spec.MinRows {
		return nil
	}
	v.refit.period = period
	return t.refit(v, k, k.sample, reasonPeriod, in.end)
}

// rowsSince returns the sampled rows predicted at or after an event time.
func rowsSince(rows []acc.SampleRow, since int64) []acc.SampleRow {
	var out []acc.SampleRow
	for i := range rows {
		if rows[i].TS >= since {
			out = append(out, rows[i])
		}
	}
	return out
}

// refit fits on the older part of the rows, compares with the calibrator in force on the newer part, publishes
// where that is significantly better, and records "no change" where not.
func (t *ModelTask) refit(v *version, k *keyState, rows []acc.SampleRow, reason string, now int64) error {
	spec := &t.cfg.Refit
	if len(rows) > spec.MaxRows {
		rows = rows[len(rows)-spec.MaxRows:]
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, compareSample)
	nTest := int(math.Ceil(float64(len(rows)) * spec.TestShare))
	fit, test := rows[:len(rows)-nTest], rows[len(rows)-nTest:]
	if len(fit) == 0 || len(test) < 2 {
		return nil
	}
	z, y, w := columns(fit)
	cal, report, err := calibrator.FitTemperature(z, v.k, y, w, calibrator.Options{})
	if err != nil {
		return t.decide(v, k, output.Calibrator{Reason: reason, Outcome: "no change: " + err.Error()}, nil, now)
	}
	e, err := compare(v.newest(), cal, test)
	if err != nil {
		return err
	}
	e.FitRows, e.TestRows = len(fit), len(test)
	e.FitFrom, e.FitTo, e.TestTo = pipeline.Format(fit[0].TS), pipeline.Format(fit[len(fit)-1].TS), pipeline.Format(test[len(test)-1].TS)
	e.Temperature, e.OnBound = cal.T(), report.OnBound
	d := output.Calibrator{Reason: reason, Evidence: e}
	d.Published, d.Outcome = verdict(spec, &e)
	return t.decide(v, k, d, cal, now)
}

// verdict is the gate: significantly better in NLL, and neither ECE nor accuracy worse than the bounds.
func verdict(spec *RefitSpec, e *output.Evidence) (publish bool, why string) {
	switch {
	case e.NLLDiff+spec.Z*e.NLLDiffSE >= 0:
		return false, fmt.Sprintf("no change: NLL difference %.5f ± %.5f on %d newer rows is not significantly below 0", e.NLLDiff, e.NLLDiffSE, e.TestRows)
	case -e.NLLDiff < spec.MinNLLGain:
		return false, fmt.Sprintf("no change: NLL would fall by %.5f on %d newer rows, less than %g", -e.NLLDiff, e.TestRows, spec.MinNLLGain)
	case e.ECENew > e.ECEInForce+spec.MaxECERise:
		return false, fmt.Sprintf("no change: ECE would rise from %.4f to %.4f", e.ECEInForce, e.ECENew)
	case e.AccNew < e.AccInForce-spec.MaxAccDr:
		return false, fmt.Sprintf("no change: accuracy would fall from %.4f to %.4f", e.AccInForce, e.AccNew)
	}
	return true, fmt.Sprintf("published: NLL %.5f → %.5f, ECE %.4f → %.4f on %d newer rows", e.NLLInForce, e.NLLNew, e.ECEInForce, e.ECENew, e.TestRows)
}

// compare scores two calibrators on the same rows; weights count.
func compare(old *inForce, candidate calibrator.Calibrator, rows []acc.SampleRow) (output.Evidence, error) {
	var current calibrator.Calibrator
	if old != nil {
		current = old.cal
	}
	n := len(rows)
	diffs, w := make([]float64, n), make([]float64, n)
	var conf [2][]float64
	var hit [2][]bool
	var nll, acc [2]float64
	total := 0.0
	k := len(rows[0].Z)
	z, p := make([]float64, k), make([]float64, k)
	for i := range rows {
		w[i] = float64(rows[i].W)
		total += w[i]
		var l [2]float64
		for side, cal := range []calibrator.Calibrator{current, candidate} {
			for j, x := range rows[i].Z {
				z[j] = float64(x)
			}
			r, rowNLL, err := calibrated(cal, z, p, int(rows[i].Y))
			if err != nil {
				return output.Evidence{}, err
			}
			l[side] = rowNLL
			ok := r.Arg == int(rows[i].Y)
			conf[side], hit[side] = append(conf[side], r.Conf), append(hit[side], ok)
			nll[side] += w[i] * rowNLL
			if ok {
				acc[side] += w[i]
			}
		}
		diffs[i] = l[1] - l[0]
	}
	mean, se := pairedMean(diffs, w, total)
	return output.Evidence{
		NLLInForce: nll[0] / total, NLLNew: nll[1] / total, NLLDiff: mean, NLLDiffSE: se,
		ECEInForce: metric.ECE(metric.EqualWidth(conf[0], hit[0], w, gateBins)), ECENew: metric.ECE(metric.EqualWidth(conf[1], hit[1], w, gateBins)),
		AccInForce: acc[0] / total, AccNew: acc[1] / total,
	}, nil
}

// gateBins is the number of bins of the ECE that the gate compares.
const gateBins = 15

// pairedMean returns the weighted mean of d and its standard error sqrt(Σ w²(d-mean)²)/Σw.
func pairedMean(d, w []float64, total float64) (mean, se float64) {
	for i := range d {
		mean += w[i] * d[i] / total
	}
	s := 0.0
	for i := range d {
		s += w[i] * w[i] * (d[i] - mean) * (d[i] - mean)
	}
	return mean, math.Sqrt(s) / total
}

// decide records the decision, and where published puts the calibrator in force from now, the end of the
// deciding label pane.
func (t *ModelTask) decide(v *version, k *keyState, d output.Calibrator, cal calibrator.Calibrator, now int64) error {
	d.Schema, d.Model, d.Version = 1, v.model, v.name
	d.DecidedAt, d.EffectiveFrom = pipeline.Format(now), pipeline.Format(now)
	if d.Published {
		v.refit.revision++
		body, err := calibrator.Encode(cal)
		if err != nil {
			return err
		}
		d.Calibrator = body
		v.calibrators = append(v.calibrators, &inForce{revision: v.refit.revision, from: now, cal: cal, encoded: body, reason: d.Reason})
		v.forget(now - t.cfg.FinalAfter)
	}
	d.Revision = v.refit.revision
	value, err := json.Marshal(d)
	if err != nil {
		return err
	}
	v.refit.last = value
	m := pipeline.Message{Stream: pipeline.StreamCalibrators, Key: []byte(v.model + "/" + v.name), Value: value, Time: now}
	if !d.Published {
		// The calibrators topic is compacted by model version: what is in force must stay its last record.
		m.Stream = pipeline.StreamDecisions
	}
	t.emit(k, m)
	return nil
}

// forget drops the calibrators that no row can ask for: rows before t have all come.
func (v *version) forget(t int64) {
	for len(v.calibrators) > 1 && v.calibrators[1].from <= t {
		v.calibrators = v.calibrators[1:]
	}
}

func columns(rows []acc.SampleRow) (z []float32, y []int32, w []float64) {
	for i := range rows {
		z = append(z, rows[i].Z...)
		y = append(y, rows[i].Y)
		w = append(w, float64(rows[i].W))
	}
	return z, y, w
}

// compareSample orders rows by prediction time, then id.
func compareSample(a, b acc.SampleRow) int {
	return cmp.Or(cmp.Compare(a.TS, b.TS), slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.LabelTS, b.LabelTS))
}
