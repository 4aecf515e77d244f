package model

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/refit"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// RefitSpec is when and how calibrators are refitted. Times are event time in nanoseconds.
type RefitSpec = refit.Config

// refitState is what a version knows of its refits.
type refitState struct {
	period   int64 // index of the period of the last refit by period
	started  bool
	alarmAt  int64  // end of the pane of the last refit on alarm; 0 = none
	revision int    // the latest that was published
	last     []byte // the last decision, published or not, as JSON

	unit   float64    // largest row weight at the latest publication by a refit
	trial  *trial     // the refit under way
	guard  *guard     // of the calibrator in force against those before it
	pin    *pin       // nobody but a person changes what is in force
	orders [][16]byte // the latest orders that were obeyed
	online *online
	losses map[*stage.InForce]*sampleLosses // of the sample, by calibrator; nil is the identity. Not in the state
}

// Reasons of a refit.
const (
	reasonPeriod   = "period"
	reasonAlarm    = "alarm"
	reasonRollback = "rollback"
	reasonManual   = "manual"
	reasonCanary   = "canary"
)

// maybeRefit does what is due for a version's calibrators at the end of a label pane of all its rows: it tests the
// one in force, goes on with the refit under way, and decides whether to begin one.
func (t *ModelTask) maybeRefit(v *version, k *keyState, in *stage.Pane) error {
	if err := t.stepOnline(v, in); err != nil {
		return err
	}
	if rolled, err := t.stepGuard(v, k, in); err != nil || rolled {
		return err
	}
	if v.refit.trial != nil {
		if err := t.stepTrial(v, k, in); err != nil {
			return err
		}
	}
	spec := &t.cfg.Refit
	if spec.Method == methodNone || spec.Method == "" || v.refit.pin != nil {
		return nil
	}
	if since, any := k.FiringSince(); any && spec.OnAlarm {
		return t.refitOnAlarm(v, k, in, since)
	}
	if spec.Period <= 0 {
		return nil
	}
	period := pipeline.PaneIndex(in.End, int64(spec.Period))
	if !v.refit.started {
		v.refit.started, v.refit.period = true, period
	}
	if period == v.refit.period || v.refit.trial.busy() || v.refit.trial.promises() {
		return nil
	}
	rows := k.Sample
	if f := v.Newest(); f != nil && f.Reason == reasonRollback {
		// Something changed: on rows from before, what was taken back would win again.
		rows = rowsSince(rows, f.From)
	}
	if len(rows) < spec.MinRows {
		return nil
	}
	v.refit.period = period
	return t.begin(v, k, rows, reasonPeriod, in)
}

// refitOnAlarm waits until FreshRows sampled rows have come since the alarm's start, and uses those only: rows from
// before the change would pull the fit back. While an alarm fires there is no refit by period, and one that is under way
// gives way: its rows are from before.
func (t *ModelTask) refitOnAlarm(v *version, k *keyState, in *stage.Pane, since int64) error {
	spec := &t.cfg.Refit
	if v.refit.trial.busy() || v.refit.alarmAt != 0 && in.End-v.refit.alarmAt < int64(spec.Cooldown) {
		return nil
	}
	if f := v.Newest(); f != nil && f.Reason == reasonAlarm {
		since = max(since, f.From)
	}
	rows := rowsSince(k.Sample, since)
	if len(rows) < spec.FreshRows {
		return nil
	}
	v.refit.alarmAt = in.End
	// It is the refit of its period too: the next by period does not follow on its heels.
	v.refit.started, v.refit.period = true, pipeline.PaneIndex(in.End, max(int64(spec.Period), 1))
	return t.begin(v, k, rows, reasonAlarm, in)
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

// begin starts a refit on the older part of the rows; the newer part is the first that its candidates are scored on.
// The fits run beside the task and are due Delay panes later: what is decided does not depend on how long they take.
func (t *ModelTask) begin(v *version, k *keyState, rows []acc.SampleRow, reason string, in *stage.Pane) error {
	spec := &t.cfg.Refit
	if len(rows) > spec.MaxRows {
		rows = rows[len(rows)-spec.MaxRows:]
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, stage.CompareRows)
	nTest := int(math.Ceil(float64(len(rows)) * spec.TestShare))
	fit, held := rows[:len(rows)-nTest], rows[len(rows)-nTest:]
	if len(fit) == 0 {
		return nil
	}
	if tr := v.refit.trial; tr != nil {
		if err := t.endTrial(v, k, "the next refit began, by "+reason, in.End); err != nil {
			return err
		}
	}
	tr := &trial{reason: reason, base: v.InForceRevision(), started: in.End, due: in.Index + max(spec.Delay, 1), seed: k.Seed("refit", in.Index),
		methods: candidateMethods(spec.Method, v.K, len(fit), v.Newest() != nil && !isIdentity(v.Newest().Cal)),
		fit:     fit, held: held, fitRows: int64(len(fit)), fitFrom: fit[0].TS, fitTo: fit[len(fit)-1].TS}
	for i := range rows {
		tr.weight = max(tr.weight, float64(rows[i].W))
	}
	v.refit.trial = tr
	t.job(v)
	return nil
}
