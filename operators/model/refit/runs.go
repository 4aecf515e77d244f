package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// runs are the refits of a version: when they begin, the current one, and what becomes of it. They know nothing of
// first answers and corrections; who changes what is in force ends the current run.
type runs struct {
	*publisher
	run     *run  // the current one; nil = none
	period  int64 // index of the period of the last refit by period
	started bool
	alarmAt int64 // end of the pane of the last refit on alarm; 0 = none
}

// fits returns the fits of the current run. It starts them if they do not run: at the start of the run, or after a
// restore.
func (rs *runs) fits() *job {
	g, r := rs.stage, rs.run
	j := g.jobs[r]
	if j == nil {
		j = newJob(r.methods, r.fit, rs.bounded(), r.seed, g.deps.MaxBytes)
		g.jobs[r] = j
		g.deps.Pool.start(j, g.wake)
	}
	return j
}

// Running reports whether a run is under way.
func (rs *runs) Running() bool { return rs.run != nil }

// Fitting reports whether a run waits for its fits.
func (rs *runs) Fitting() bool { return rs.run.fitting() }

// Due returns the label pane at which the fits of a run that waits for them are collected.
func (rs *runs) Due() int64 { return rs.run.due }

// Awaits reports whether a label pane must wait: a fit is due at it and has not ended.
func (rs *runs) Awaits(pane int64) bool {
	return rs.run.fitting() && pane >= rs.run.due && !rs.fits().finished()
}

// Idle reports whether a label pane without rows would change nothing.
func (rs *runs) Idle(pane int64) bool { return !rs.run.fitting() || pane >= rs.run.due }

// Continue starts the fits that were under way when the state was saved.
func (rs *runs) Continue() {
	if rs.run.fitting() {
		rs.fits()
	}
}

// stepRefit continues the current run, and begins one where an alarm or the period asks for it.
func (rs *runs) stepRefit(in *stage.Pane) error {
	if rs.run != nil {
		if err := rs.stepRun(in); err != nil {
			return err
		}
	}
	cfg := &rs.stage.cfg
	if cfg.Method == MethodNone || cfg.Method == "" || rs.pin != nil {
		return nil
	}
	if since, firing := rs.whole().FiringSince(); firing && cfg.OnAlarm {
		return rs.onAlarm(in, since)
	}
	return rs.byPeriod(in)
}

// byPeriod begins a run in a new period that has MinRows rows more than the run by period before it: runs on nearly the
// same rows would test the same evidence again and again, and each would be replaced before it has any of its own. If
// the current run is likely to publish soon, that one goes on instead.
func (rs *runs) byPeriod(in *stage.Pane) error {
	cfg, k := &rs.stage.cfg, rs.sampled()
	if cfg.Period <= 0 {
		return nil
	}
	period := pipeline.PaneIndex(in.End, int64(cfg.Period))
	if !rs.started {
		rs.started, rs.period = true, period
	}
	rs.period = min(rs.period, period) // above it where refit.period was shorter before
	if period == rs.period || rs.run.busy() || rs.run.promises() {
		return nil
	}
	since := rs.changes.latest()
	if f := rs.version.Newest(); takenBack(f) {
		// On rows from before the change, or of labels that tell nothing, what was rolled back would win again.
		since = max(since, f.From)
	}
	if labelledSince(k.Sample, since, rs.period*int64(cfg.Period)) < cfg.MinRows {
		return nil
	}
	rs.period = period
	return rs.begin(rowsSince(k.Sample, since), reasonPeriod, in)
}

// onAlarm begins a run when FreshRows sampled rows have come since the alarm's start, or that of a later fall of
// accuracy: an alarm of before may still fire. It uses only these, because rows from before the change would bias the
// fit. While an alarm fires no run begins by period, and a current run is replaced, because its rows are from before
// the change; one that is of this change goes on until FreshRows more have come, or few rows would end each before it
// is tested, and while it is likely to publish soon, until the next could fit twice its rows: that would have to show
// again what it has shown.
func (rs *runs) onAlarm(in *stage.Pane, since int64) error {
	cfg := &rs.stage.cfg
	if rs.run.busy() || rs.alarmAt != 0 && in.End-rs.alarmAt < int64(cfg.Cooldown) {
		return nil
	}
	if f := rs.version.Newest(); f != nil && f.Reason == reasonAlarm {
		since = max(since, f.From)
	}
	since = max(since, rs.changes.latest(), rs.whole().AccuracyFell())
	sample, labelled := rs.sampled().Sample, int64(math.MinInt64)
	if rs.run.ofAlarm(since) {
		if rs.run.promises() && int64(labelledSince(sample, since, math.MinInt64)) < 2*rs.run.fitRows {
			return nil
		}
		labelled = rs.run.started
	}
	if labelledSince(sample, since, labelled) < cfg.FreshRows {
		return nil
	}
	rs.alarmAt = in.End
	// This run also counts as the run of its period, so that no run by period follows at once.
	rs.started, rs.period = true, pipeline.PaneIndex(in.End, max(int64(cfg.Period), 1))
	return rs.begin(rowsSince(sample, since), reasonAlarm, in)
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

// labelledSince is how many of rowsSince have labels of an event time or later.
func labelledSince(rows []acc.SampleRow, since, labelled int64) (n int) {
	for i := range rows {
		if row := &rows[i]; row.LabelTS >= labelled && row.TS >= since {
			n++
		}
	}
	return n
}

// begin starts a run on the older part of the rows. Its candidates are first scored on the newer part. The fits run
// beside the task and are due Delay panes later, so that decisions do not depend on how long they take.
func (rs *runs) begin(rows []acc.SampleRow, reason string, in *stage.Pane) error {
	cfg, v := &rs.stage.cfg, rs.version
	if len(rows) > cfg.MaxRows {
		rows = rows[len(rows)-cfg.MaxRows:]
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, stage.CompareRows)
	nTest := int(math.Ceil(float64(len(rows)) * cfg.TestShare))
	fit, held := rows[:len(rows)-nTest], rows[len(rows)-nTest:]
	if len(fit) == 0 {
		return nil
	}
	if rs.run != nil {
		if err := rs.end("the next refit began, by "+reason, in.End); err != nil {
			return err
		}
	}
	f := v.Newest()
	methods := candidateMethods(cfg.Method, v.K, len(fit), f != nil && !isIdentity(f.Cal))
	why := unmixed(v.K, fit, held)
	if why != "" {
		methods = slices.DeleteFunc(methods, learnsClasses)
	}
	rs.run = &run{
		reason:  reason,
		base:    v.InForceRevision(),
		started: in.End,
		due:     in.Index + max(cfg.Delay, 1),
		seed:    rs.whole().Seed("refit", in.Index),
		methods: methods,
		fit:     fit,
		held:    held,
		fitRows: int64(len(fit)),
		fitFrom: fit[0].TS,
		fitTo:   fit[len(fit)-1].TS,
		weight:  maxWeight(rows),
	}
	if len(methods) == 0 {
		return rs.end(cfg.Method+": "+why, in.End)
	}
	rs.fits()
	return nil
}

func maxWeight(rows []acc.SampleRow) (w float64) {
	for i := range rows {
		w = max(w, float64(rows[i].W))
	}
	return w
}

// end ends the current run without a change, and publishes its evidence.
func (rs *runs) end(why string, now int64) error {
	r, cfg := rs.run, &rs.stage.cfg
	rs.stage.cancel(rs.run)
	d := record.Calibrator{Reason: r.reason, Outcome: "no change: " + why,
		Evidence: r.evidence(rs.bound(), cfg, r.nearest())}
	if i := r.nearest(); i >= 0 && r.rows > 0 {
		c := r.candidates[i]
		d.Stage, d.Method = record.StageShadow, c.method
		lacks := r.verdict(c, cfg)
		if lacks == "" {
			var err error
			if lacks, err = rs.unsure(c); err != nil {
				return err
			}
		}
		if lacks == "" {
			lacks = rs.account.holds()
		}
		if lacks != "" {
			d.Outcome += "; nearest was " + c.method + ": " + lacks
		}
	}
	for _, c := range r.candidates {
		if c.err != nil {
			d.Outcome += "; " + c.err.Error()
		}
	}
	rs.run = nil
	if r.phase == phaseCanary {
		if err := rs.endCanary(d.Outcome, now); err != nil {
			return err
		}
	}
	return rs.emit(&d, pipeline.StreamDecisions, now)
}

// promote takes a candidate to its next stage: to the canary if one is configured, otherwise into force.
func (rs *runs) promote(i int, now int64) error {
	r, cfg := rs.run, &rs.stage.cfg
	if cfg.CanaryShare > 0 && r.phase != phaseCanary {
		return rs.beginCanary(i, now)
	}
	c := r.candidates[i]
	e := r.evidence(rs.bound(), cfg, i)
	canary := r.phase == phaseCanary
	rs.run, rs.unit = nil, r.weight
	d := record.Calibrator{Reason: r.reason, Method: c.method, Evidence: e,
		Outcome: fmt.Sprintf("published: %s, NLL %.5f → %.5f, ECE %.4f → %.4f on %d newer rows",
			c.method, e.NLLInForce, e.NLLNew, e.ECEInForce, e.ECENew, e.TestRows)}
	if err := rs.putInForce(&d, c.cal, c.encoded, now); err != nil || !canary {
		return err
	}
	return rs.endCanary("in force for all", now)
}
