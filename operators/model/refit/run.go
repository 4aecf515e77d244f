package refit

import (
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Phases of a run.
const (
	phaseFitting byte = iota
	phaseShadow       // candidates are scored, and no id gets them
	phaseCanary       // a share of the ids gets the chosen candidate
)

// leastValidation is the smallest number of validated rows for publishing. With fewer rows the bounds on ECE and
// accuracy mean nothing.
const leastValidation = 100

// run is one refit from its start to its decision. First its fits run. Then it validates the candidates progressively
// against the calibrator in force: on the newer part of the sample, then on the sampled rows of every later pane, each
// once. The test is evalue.Paired on the NLL, so its result may be read after every pane.
type run struct {
	reason         string
	base           int   // revision in force at the start; 0 = the identity
	started        int64 // end of the label pane at which it began
	due            int64 // first label pane at which the fits must have ended
	phase          byte
	seed           uint64
	methods        []string
	fitRows        int64
	fitFrom, fitTo int64
	digest         string  // digest of the rows of the fits, or of other inputs; "" = not known
	weight         float64 // largest weight of the rows known at the start, the unit of the test

	fit, held []acc.SampleRow // while fitting: rows of the fits, rows to score afterwards

	rows       int64 // validated rows
	testTo     int64
	inForce    score
	candidates []*candidate
	canaryFrom int64 // event time at which the canary began
	chosen     int
	worse      *evalue.Paired // test that the chosen candidate is worse, during the canary
}

// busy reports whether the next run must wait for this one, because its candidate is in the canary.
func (r *run) busy() bool { return r != nil && r.phase == phaseCanary }

// ofAlarm reports whether a run began by an alarm, on rows predicted at or after an event time.
func (r *run) ofAlarm(since int64) bool {
	return r != nil && r.reason == reasonAlarm && r.fitFrom >= since
}

// promising is the log e-value from which a validation continues when the next refit by period is due. A small gain
// needs more rows than a period has, so a run that starts again every period would never show it.
const promising = 1

// promises reports whether a candidate is likely to be published soon.
func (r *run) promises() bool {
	if r == nil || r.phase != phaseShadow {
		return false
	}
	for _, c := range r.candidates {
		if c.out == "" && c.test.LogE() >= promising {
			return true
		}
	}
	return false
}

// fitting reports whether a run waits for its fits.
func (r *run) fitting() bool { return r != nil && r.phase == phaseFitting }

// stepRun continues a run at a label pane.
func (rs *runs) stepRun(in *stage.Pane) error {
	r := rs.run
	if r.base != rs.version.InForceRevision() {
		return rs.end("what is in force changed meanwhile", in.End)
	}
	if r.phase == phaseFitting {
		if room := rs.stage.cfg.heldRows() - len(r.held); room > 0 {
			r.held = append(r.held, in.Rows[:min(room, len(in.Rows))]...)
		}
		if in.Index < r.due {
			return nil
		}
		if err := rs.collect(); err != nil {
			return err
		}
		if !r.alive() {
			return rs.end("no method could be fitted", in.End)
		}
		held := r.held
		r.fit, r.held, r.phase = nil, nil, phaseShadow
		if err := r.validate(rs.publisher, held); err != nil {
			return err
		}
	} else if err := r.validate(rs.publisher, in.Rows); err != nil {
		return err
	}
	if r.phase == phaseCanary {
		return rs.stepCanary(in)
	}
	return rs.decide(in)
}

// decide publishes a candidate, ends the validation, or waits for more rows.
func (rs *runs) decide(in *stage.Pane) error {
	r, cfg := rs.run, &rs.stage.cfg
	if r.best(cfg) >= 0 && !rs.account.resting() && in.End-r.started >= int64(cfg.ShadowFor) {
		c, err := rs.steadiest()
		if err != nil {
			return err
		}
		if c >= 0 {
			if wait, err := rs.mustWait(r.candidates[c]); err != nil || wait {
				return err
			}
			return rs.promote(c, in.End)
		}
	}
	switch {
	case !r.alive():
		return rs.end("every candidate is refuted", in.End)
	case cfg.ValidationRows > 0 && r.rows >= int64(cfg.ValidationRows):
		return rs.end("validation_rows are over", in.End)
	case cfg.ValidationFor > 0 && in.End-r.started >= int64(cfg.ValidationFor):
		return rs.end("validation_for is over", in.End)
	}
	return nil
}

// newestRows is the number of newest rows on which a candidate must not be worse. If the stream changes during a
// validation, these rows show it first, while the sum over all rows still favours the candidate.
const newestRows = 2 * leastValidation

// mustWait reports whether a candidate that may be published must wait. It must wait if its mean NLL on the newestRows
// latest sampled rows, without those it was fitted on, is above that of the calibrator in force. A candidate by period
// must also wait while an alert fires that began after the oldest row of its fit, because the refit that follows uses
// only rows from after the change.
func (rs *runs) mustWait(c *candidate) (bool, error) {
	r, k := rs.run, rs.sampled()
	if since, firing := k.FiringSince(); firing && rs.stage.cfg.OnAlarm && r.reason == reasonPeriod &&
		since > r.fitFrom {
		return true, nil
	}
	gain := 0.0
	rows := rowsSince(k.Sample[max(0, len(k.Sample)-newestRows):], r.fitTo+1)
	err := rs.pairOf(c.cal).each(rows, func(row *acc.SampleRow, was, now stage.RowScore) {
		gain += float64(row.W) * (was.NLL - now.NLL)
	})
	return gain < 0, err
}

// inForce returns the calibrator in force for all ids; nil = the identity.
func inForce(v *stage.Version) calibrator.Calibrator {
	if f := v.Newest(); f != nil {
		return f.Cal
	}
	return nil
}

// heldRows limits the rows that wait for the fits.
func (c *Config) heldRows() int { return max(c.MaxRows, c.ValidationRows) }

// collect takes the results of a run's fits. The task calls it when they have ended (Awaits).
func (rs *runs) collect() error {
	j := rs.fits()
	<-j.done
	delete(rs.stage.jobs, rs.run)
	rs.run.digest = j.digest
	for _, result := range j.results {
		c := &candidate{fitResult: result}
		var err error
		if result.err != nil {
			c.out = result.err.Error()
		} else if c.test, err = evalue.NewPaired(rs.bound(), 0); err != nil {
			return err
		}
		rs.run.candidates = append(rs.run.candidates, c)
	}
	return nil
}

// alive reports whether any candidate can still be published.
func (r *run) alive() bool {
	for _, c := range r.candidates {
		if c.out == "" {
			return true
		}
	}
	return false
}

// validate scores rows with the calibrator in force and with every candidate.
func (r *run) validate(p *publisher, rows []acc.SampleRow) error {
	current := inForce(p.version)
	sc, bound := stage.NewScorer(p.version.K), p.bound()
	for i := range rows {
		row := &rows[i]
		old, err := sc.Row(current, row, bound)
		if err != nil {
			return err
		}
		w := float64(row.W)
		r.rows++
		r.testTo = max(r.testTo, row.TS)
		r.inForce.add(old, w)
		for n, c := range r.candidates {
			if c.out != "" {
				continue
			}
			now, err := sc.Row(c.cal, row, bound)
			if err != nil {
				c.out = err.Error()
				continue
			}
			gain, unit := old.NLL-now.NLL, unitOf(w, r.weight)
			err = c.add(now, w, gain, unit)
			if err == nil && r.phase == phaseCanary && n == r.chosen {
				err = r.worse.Add(-unit * gain)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// unitOf returns a row's weight as tests and accounts use it, in [0, 1]: in units of the largest that was known when
// they began, 0 = none. Those above count as that one.
func unitOf(w, largest float64) float64 {
	if largest > 0 {
		w /= largest
	}
	return min(w, 1)
}

// need returns the log e-value that is needed to publish. The level is split over all candidates, including those that
// could not be fitted.
func (r *run) need(cfg *Config) float64 {
	return math.Log(float64(max(len(r.candidates), 1)) / cfg.Alpha)
}

// best returns the candidate to publish, -1 if there is none: among those with e-value ≥ m/α that keep all bounds, the
// one with the least NLL. It also rules out candidates that are shown to break a bound.
func (r *run) best(cfg *Config) int {
	best := -1
	for i, c := range r.candidates {
		if c.out != "" || r.rows < leastValidation {
			continue
		}
		if c.out = r.refuted(c, cfg); c.out != "" {
			continue
		}
		if r.verdict(c, cfg) == "" && (best < 0 || c.score.mean() < r.candidates[best].score.mean()) {
			best = i
		}
	}
	return best
}

// nearest returns the candidate that came nearest to being published, for the record; -1 if none was fitted.
func (r *run) nearest() int {
	best := -1
	for i, c := range r.candidates {
		if c.test != nil && (best < 0 || c.test.LogE() > r.candidates[best].test.LogE()) {
			best = i
		}
	}
	return best
}
