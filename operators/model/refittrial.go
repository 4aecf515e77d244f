package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/calib/metric"
)

// Phases of a trial.
const (
	phaseFitting byte = iota
	phaseShadow       // candidates are scored, nobody gets them
	phaseCanary       // a share of the ids gets the chosen one
)

// gateBins is the number of bins of the ECE that a validation compares.
const gateBins = 15

// leastValidation is the least rows that anything is published after: the bounds on ECE and accuracy are void on fewer.
const leastValidation = 100

// trial is one refit from its start to its decision: fits under way, then progressive validation of the candidates
// against the calibrator in force, first on the newer part of the sample and then on the sampled rows of every later
// pane, each once. The test is evalue.Paired on the NLL, so it may be looked at after every pane.
type trial struct {
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
	stageFrom  int64 // event time at which the canary began
	chosen     int
	worse      *evalue.Paired // of the chosen one in the canary: is it worse?
}

// candidate is one method's fit under validation.
type candidate struct {
	fitResult
	out   string // why it is out of the running
	score score
	test  *evalue.Paired
	// Paired differences new - in force: Σwd, Σw²d, Σw²d².
	wd, w2d, w2d2 float64

	known sampleLosses
}

// score are the sums of one calibrator over the validated rows.
type score struct {
	w, w2, nll, hits float64
	bins             [gateBins]metric.Bin
}

// busy reports whether a trial must not be given up for the next: its candidate is with the canary.
func (tr *trial) busy() bool { return tr != nil && tr.phase == phaseCanary }

// promising is the log e-value from which on a validation outlasts the next refit by period: a small gain takes more rows
// than a period has, and whoever starts again every time never sees it.
const promising = 1

// promises reports whether a candidate is on its way to being published.
func (tr *trial) promises() bool {
	if tr == nil || tr.phase != phaseShadow {
		return false
	}
	for _, c := range tr.candidates {
		if c.out == "" && c.test.LogE() >= promising {
			return true
		}
	}
	return false
}

// fitting reports whether a trial waits for its fits.
func (tr *trial) fitting() bool { return tr != nil && tr.phase == phaseFitting }

// nllBound is the bound B of the NLL in tests, for K classes: probabilities are floored at e^-B = 1/(100 K), a hundredth of
// the uniform one. Every loss is then in [0, B], and the claim of a test is about that loss.
func nllBound(k int) float64 { return math.Log(100 * float64(k)) }

// stepTrial goes on with a trial at a label pane.
func (t *ModelTask) stepTrial(v *version, k *keyState, in *stage.Pane) error {
	tr := v.refit.trial
	spec := &t.cfg.Refit
	if tr.base != v.InForceRevision() {
		return t.endTrial(v, k, "what is in force changed meanwhile", in.End)
	}
	if tr.phase == phaseFitting {
		if room := t.heldRows() - len(tr.held); room > 0 {
			tr.held = append(tr.held, in.Rows[:min(room, len(in.Rows))]...)
		}
		if in.Index < tr.due {
			return nil
		}
		if err := t.collect(v); err != nil {
			return err
		}
		if !tr.running() {
			return t.endTrial(v, k, "no method could be fitted", in.End)
		}
		held := tr.held
		tr.fit, tr.held, tr.phase = nil, nil, phaseShadow
		if err := tr.validate(v, held); err != nil {
			return err
		}
	} else if err := tr.validate(v, in.Rows); err != nil {
		return err
	}
	if tr.phase == phaseCanary {
		return t.stepCanary(v, k, in)
	}
	if tr.best(spec) >= 0 && in.End-tr.started >= int64(spec.ShadowFor) {
		c, err := t.steadiest(v, k)
		if err != nil {
			return err
		}
		if c >= 0 {
			if wait, err := t.turning(v, k, tr.candidates[c]); err != nil || wait {
				return err
			}
			return t.promote(v, k, c, in.End)
		}
	}
	switch {
	case !tr.running():
		return t.endTrial(v, k, "every candidate is refuted", in.End)
	case spec.ValidationRows > 0 && tr.rows >= int64(spec.ValidationRows):
		return t.endTrial(v, k, "validation_rows are over", in.End)
	case spec.ValidationFor > 0 && in.End-tr.started >= int64(spec.ValidationFor):
		return t.endTrial(v, k, "validation_for is over", in.End)
	}
	return nil
}

// newestRows is how many of the newest rows a candidate must not be worse on: a change amid a validation shows in them first,
// while all of its rows still speak for the candidate.
const newestRows = 2 * leastValidation

// turning reports whether a candidate that may be published must wait: where its mean NLL on the latest newestRows sampled rows, as
// far as they came after those of the fit, is above that in force; and one by period while an alarm or a rule fires that began after
// the oldest row that it was fitted on, for the refit that follows has rows from after the change only.
func (t *ModelTask) turning(v *version, k *keyState, c *candidate) (bool, error) {
	tr := v.refit.trial
	if since, any := k.FiringSince(); any && t.cfg.Refit.OnAlarm && tr.reason == reasonPeriod && since > tr.fitFrom {
		return true, nil
	}
	var current calibrator.Calibrator
	if f := v.Newest(); f != nil {
		current = f.Cal
	}
	sc, bound, gain := stage.NewScorer(v.K), nllBound(v.K), 0.0
	for _, row := range k.Sample[max(0, len(k.Sample)-newestRows):] {
		if row.TS <= tr.fitTo {
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

// heldRows bounds the rows that wait for the fits.
func (t *ModelTask) heldRows() int {
	return max(t.cfg.Refit.MaxRows, t.cfg.Refit.ValidationRows)
}

// collect takes the results of a trial's fits, which it waits for: process lets a model come here when they are done.
func (t *ModelTask) collect(v *version) error {
	tr := v.refit.trial
	job := t.job(v)
	<-job.done
	delete(t.jobs, v)
	tr.digest = job.digest
	for _, r := range job.results {
		c := &candidate{fitResult: r}
		var err error
		if r.err != nil {
			c.out = r.err.Error()
		} else if c.test, err = evalue.NewPaired(nllBound(v.K), 0); err != nil {
			return err
		}
		tr.candidates = append(tr.candidates, c)
	}
	return nil
}

// running reports whether a candidate is left.
func (tr *trial) running() bool {
	for _, c := range tr.candidates {
		if c.out == "" {
			return true
		}
	}
	return false
}

// validate scores rows by the calibrator in force and by every candidate.
func (tr *trial) validate(v *version, rows []acc.SampleRow) error {
	var current calibrator.Calibrator
	if f := v.Newest(); f != nil {
		current = f.Cal
	}
	sc, bound := stage.NewScorer(v.K), nllBound(v.K)
	for i := range rows {
		row := &rows[i]
		old, err := sc.Row(current, row, bound)
		if err != nil {
			return err
		}
		w := float64(row.W)
		tr.rows++
		tr.testTo = max(tr.testTo, row.TS)
		tr.inForce.add(old, w)
		for n, c := range tr.candidates {
			if c.out != "" {
				continue
			}
			now, err := sc.Row(c.cal, row, bound)
			if err != nil {
				c.out = err.Error()
				continue
			}
			c.score.add(now, w)
			gain := old.NLL - now.NLL
			c.wd -= w * gain
			c.w2d -= w * w * gain
			c.w2d2 += w * w * gain * gain
			unit := tr.unit(w)
			if err := c.test.Add(unit * gain); err != nil {
				return err
			}
			if tr.phase == phaseCanary && n == tr.chosen {
				if err := tr.worse.Add(-unit * gain); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unit is a row's weight as the tests have it, in [0, 1]: weights above the largest known at the start count as that one.
func (tr *trial) unit(w float64) float64 {
	if tr.weight <= 0 {
		return min(w, 1)
	}
	return min(w/tr.weight, 1)
}

func (s *score) add(r stage.RowScore, w float64) {
	s.w += w
	s.w2 += w * w
	s.nll += w * r.NLL
	b := &s.bins[metric.BinIndex(r.Confidence, gateBins)]
	b.N++
	b.W += w
	b.SumC += w * r.Confidence
	if r.Hit {
		s.hits += w
		b.SumA += w
	}
}

func (s *score) ece() float64  { return metric.ECE(s.bins[:]) }
func (s *score) mean() float64 { return s.nll / s.w }
func (s *score) acc() float64  { return s.hits / s.w }

// diff is the mean paired difference new - in force of the NLL and its standard error.
func (c *candidate) diff() (mean, se float64) {
	s := &c.score
	mean = c.wd / s.w
	return mean, math.Sqrt(max(0, c.w2d2-2*mean*c.w2d+mean*mean*s.w2)) / s.w
}

// need is the log e-value that publishes: the level is split over the candidates, fitted or not.
func (tr *trial) need(spec *RefitSpec) float64 {
	return math.Log(float64(max(len(tr.candidates), 1)) / spec.Alpha)
}

// best returns the candidate to publish, -1 where none may be: of those with e-value ≥ m/α and bounds kept the one with
// the least NLL. It also puts those out of the running that are proved to break a bound.
func (tr *trial) best(spec *RefitSpec) int {
	best := -1
	for i, c := range tr.candidates {
		if c.out != "" || tr.rows < leastValidation {
			continue
		}
		if c.out = tr.refuted(c, spec); c.out != "" {
			continue
		}
		if tr.verdict(c, spec) == "" && (best < 0 || c.score.mean() < tr.candidates[best].score.mean()) {
			best = i
		}
	}
	return best
}

// refuted says which bound a candidate breaks for sure: by more than the rows' luck, at any time.
func (tr *trial) refuted(c *candidate, spec *RefitSpec) string {
	n := float64(tr.rows)
	if rise := c.score.ece() - tr.inForce.ece(); rise > spec.MaxECERise+2*evalue.ECERadius(n, gateBins, spec.Alpha) {
		return fmt.Sprintf("ECE rises by %.4f", rise)
	}
	if drop := tr.inForce.acc() - c.score.acc(); drop > spec.MaxAccuracyDrop+2*evalue.ECERadius(n, 1, spec.Alpha) {
		return fmt.Sprintf("accuracy falls by %.4f", drop)
	}
	return ""
}

// verdict says why a candidate may not be published now; "" = it may.
func (tr *trial) verdict(c *candidate, spec *RefitSpec) string {
	diff, se := c.diff()
	switch {
	case c.out != "":
		return c.out
	case tr.rows < leastValidation:
		return fmt.Sprintf("%d rows are too few to tell", tr.rows)
	case c.test.LogE() < tr.need(spec):
		return fmt.Sprintf("NLL difference %.5f ± %.5f: log e-value %.2f is below %.2f", diff, se, c.test.LogE(), tr.need(spec))
	case -diff < spec.MinNLLGain:
		return fmt.Sprintf("NLL would fall by %.5f, less than %g", -diff, spec.MinNLLGain)
	case c.score.ece() > tr.inForce.ece()+spec.MaxECERise:
		return fmt.Sprintf("ECE would rise from %.4f to %.4f", tr.inForce.ece(), c.score.ece())
	case c.score.acc() < tr.inForce.acc()-spec.MaxAccuracyDrop:
		return fmt.Sprintf("accuracy would fall from %.4f to %.4f", tr.inForce.acc(), c.score.acc())
	}
	return ""
}

// nearest is the candidate that came nearest to being published, for the record; -1 where none was fitted.
func (tr *trial) nearest() int {
	best := -1
	for i, c := range tr.candidates {
		if c.test != nil && (best < 0 || c.test.LogE() > tr.candidates[best].test.LogE()) {
			best = i
		}
	}
	return best
}
