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
	phaseShadow       // candidates are scored, nobody gets them
	phaseCanary       // a share of the ids gets the chosen one
)

// leastValidation is the least rows that anything is published after: the bounds on ECE and accuracy are void on fewer.
const leastValidation = 100

// run is one refit from its start to its decision: fits under way, then progressive validation of the candidates
// against the calibrator in force, first on the newer part of the sample and then on the sampled rows of every later
// pane, each once. The test is evalue.Paired on the NLL, so it may be looked at after every pane.
type run struct {
	reason         string
	base           int   // revision that was in force at its start, 0 the identity
	started        int64 // end of the label pane that it began at
	due            int64 // first label pane at which the fits must be there
	phase          byte
	seed           uint64
	methods        []string
	fitRows        int64
	fitFrom, fitTo int64
	digest         string  // of the rows of the fits, or what else they are of; "" = not known
	weight         float64 // largest weight of the rows known at the start: that of the test's unit

	fit, held []acc.SampleRow // while fitting: rows of the fits, rows to be scored

	rows       int64 // validated
	testTo     int64
	inForce    score
	candidates []*candidate
	canaryFrom int64 // event time at which the canary began
	chosen     int
	worse      *evalue.Paired // of the chosen one in the canary: is it worse?
}

// busy reports whether a run must not be given up for the next: its candidate is with the canary.
func (r *run) busy() bool { return r != nil && r.phase == phaseCanary }

// promising is the log e-value from which on a validation outlasts the next refit by period: a small gain takes
// more rows than a period has, and a run that starts again every time never sees it.
const promising = 1

// promises reports whether a candidate is on its way to being published.
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

// nllBound is the bound B of the NLL in tests, for K classes: probabilities are floored at e^-B = 1/(100 K), a
// hundredth of the uniform one. Every loss is then in [0, B], and the claim of a test is about that loss.
func nllBound(k int) float64 { return math.Log(100 * float64(k)) }

// stepRun goes on with a run at a label pane.
func (s *State) stepRun(in *stage.Pane) error {
	r := s.run
	if r.base != s.version.InForceRevision() {
		return s.end("what is in force changed meanwhile", in.End)
	}
	if r.phase == phaseFitting {
		if room := s.stage.cfg.heldRows() - len(r.held); room > 0 {
			r.held = append(r.held, in.Rows[:min(room, len(in.Rows))]...)
		}
		if in.Index < r.due {
			return nil
		}
		if err := s.collect(); err != nil {
			return err
		}
		if !r.alive() {
			return s.end("no method could be fitted", in.End)
		}
		held := r.held
		r.fit, r.held, r.phase = nil, nil, phaseShadow
		if err := r.validate(s.version, held); err != nil {
			return err
		}
	} else if err := r.validate(s.version, in.Rows); err != nil {
		return err
	}
	if r.phase == phaseCanary {
		return s.stepCanary(in)
	}
	return s.decide(in)
}

// decide publishes a candidate of a validation, ends the validation, or waits for more rows.
func (s *State) decide(in *stage.Pane) error {
	r, cfg := s.run, &s.stage.cfg
	if r.best(cfg) >= 0 && in.End-r.started >= int64(cfg.ShadowFor) {
		c, err := s.steadiest()
		if err != nil {
			return err
		}
		if c >= 0 {
			if wait, err := s.turning(r.candidates[c]); err != nil || wait {
				return err
			}
			return s.promote(c, in.End)
		}
	}
	switch {
	case !r.alive():
		return s.end("every candidate is refuted", in.End)
	case cfg.ValidationRows > 0 && r.rows >= int64(cfg.ValidationRows):
		return s.end("validation_rows are over", in.End)
	case cfg.ValidationFor > 0 && in.End-r.started >= int64(cfg.ValidationFor):
		return s.end("validation_for is over", in.End)
	}
	return nil
}

// newestRows is how many of the newest rows a candidate must not be worse on: a change amid a validation shows in
// them first, while all of its rows still speak for the candidate.
const newestRows = 2 * leastValidation

// turning reports whether a candidate that may be published must wait: where its mean NLL on the latest newestRows
// sampled rows, as far as they came after those of the fit, is above that in force; and one by period while an
// alarm or a rule fires that began after the oldest row that it was fitted on, for the refit that follows has rows
// from after the change only.
func (s *State) turning(c *candidate) (bool, error) {
	r, k := s.run, s.whole()
	if since, firing := k.FiringSince(); firing && s.stage.cfg.OnAlarm && r.reason == reasonPeriod &&
		since > r.fitFrom {
		return true, nil
	}
	current := inForce(s.version)
	sc, bound, gain := stage.NewScorer(s.version.K), nllBound(s.version.K), 0.0
	for _, row := range k.Sample[max(0, len(k.Sample)-newestRows):] {
		if row.TS <= r.fitTo {
			continue
		}
		old, err := sc.Row(current, &row, bound)
		if err != nil {
			return false, err
		}
		now, err := sc.Row(c.cal, &row, bound)
		if err != nil {
			return false, err
		}
		gain += float64(row.W) * (old.NLL - now.NLL)
	}
	return gain < 0, nil
}

// inForce is the calibrator in force for all; nil = the identity.
func inForce(v *stage.Version) calibrator.Calibrator {
	if f := v.Newest(); f != nil {
		return f.Cal
	}
	return nil
}

// heldRows bounds the rows that wait for the fits.
func (c *Config) heldRows() int { return max(c.MaxRows, c.ValidationRows) }

// collect takes the results of a run's fits. The task comes here when they are done (Awaits).
func (s *State) collect() error {
	j := s.stage.job(s)
	<-j.done
	delete(s.stage.jobs, s)
	s.run.digest = j.digest
	for _, result := range j.results {
		c := &candidate{fitResult: result}
		var err error
		if result.err != nil {
			c.out = result.err.Error()
		} else if c.test, err = evalue.NewPaired(nllBound(s.version.K), 0); err != nil {
			return err
		}
		s.run.candidates = append(s.run.candidates, c)
	}
	return nil
}

// alive reports whether a candidate is left.
func (r *run) alive() bool {
	for _, c := range r.candidates {
		if c.out == "" {
			return true
		}
	}
	return false
}

// validate scores rows by the calibrator in force and by every candidate.
func (r *run) validate(v *stage.Version, rows []acc.SampleRow) error {
	current := inForce(v)
	sc, bound := stage.NewScorer(v.K), nllBound(v.K)
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
			gain, unit := old.NLL-now.NLL, r.unit(w)
			if err := c.add(now, w, gain, unit); err != nil {
				return err
			}
			if r.phase == phaseCanary && n == r.chosen {
				if err := r.worse.Add(-unit * gain); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unit is a row's weight as the tests have it, in [0, 1]: weights above the largest known at the start count as
// that one.
func (r *run) unit(w float64) float64 {
	if r.weight <= 0 {
		return min(w, 1)
	}
	return min(w/r.weight, 1)
}

// need is the log e-value that publishes: the level is split over the candidates, fitted or not.
func (r *run) need(cfg *Config) float64 {
	return math.Log(float64(max(len(r.candidates), 1)) / cfg.Alpha)
}

// best returns the candidate to publish, -1 where none may be: of those with e-value ≥ m/α and bounds kept the one with
// the least NLL. It also puts those out of the running that are proved to break a bound.
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

// nearest is the candidate that came nearest to being published, for the record; -1 where none was fitted.
func (r *run) nearest() int {
	best := -1
	for i, c := range r.candidates {
		if c.test != nil && (best < 0 || c.test.LogE() > r.candidates[best].test.LogE()) {
			best = i
		}
	}
	return best
}
