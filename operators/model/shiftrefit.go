package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// What RefitSpec.LabelShift may be: what is done where the shares of the classes have moved; off is nothing.
const (
	ShiftCandidate = "candidate" // class weights on the calibrator in force are tried as a refit's candidate is
	ShiftAtOnce    = "at_once"   // they are put into force before labels come, where the test of the assumption passes
)

const reasonShift = "label_shift"

const (
	// leastShift is the total variation of shares that is worth a correction.
	leastShift = .02
	// weightBound keeps a class from being ruled out by a window in which it did not come.
	weightBound = 100
	// leastContrast is below what can be sure of the share of one of more than 128 classes: 3² of the 3.9² and more that a test at .01 asks for.
	leastContrast = 9
)

// stepShift looks at the shares of the classes once FreshRows predictions have come since the last look, labels or not, and proposes
// class weights where they have moved for sure and the assumption of label shift is not rejected.
func (t *ModelTask) stepShift(v *version, k *keyState, in *stage.Pane) error {
	spec := &t.cfg.Refit
	if spec.LabelShift != ShiftCandidate && spec.LabelShift != ShiftAtOnce || k.drift == nil {
		return nil
	}
	c := &k.drift.classes
	for _, cell := range in.Cells {
		var err error
		if c.block, err = plusClasses(c.block, cell.Set); err != nil {
			return err
		}
	}
	if c.block == nil {
		return nil
	}
	if n, _ := c.block.Total(); n < int64(max(spec.FreshRows, 1)) {
		return nil
	}
	now := c.block
	c.block = nil
	if v.refit.pin != nil || v.refit.trial != nil || c.at != 0 && in.End-c.at < int64(spec.Cooldown) {
		return nil
	}
	found, why := c.correction(v, k, now, spec)
	if found == nil {
		if why != "" {
			t.log.Debug("no correction of class shares", "model", v.Model, "version", v.Name, "why", why)
		}
		return nil
	}
	c.at = in.End
	return t.propose(v, k, in, found)
}

// correction is class weights on the calibrator in force, and why.
type correction struct {
	cal *calibrator.ClassWeights
	shift.Estimate
	moved  float64 // total variation of the shares that the weights are for from the reference's
	digest string
}

// correction is the calibrator in force with weights for the shares of now; nil where it needs none, or none is known. Of more classes than can be told
// apart those whose predictions have moved most are, and the others have the weight of their sum.
func (d *classDrift) correction(v *version, k *keyState, now *acc.ClassCounts, spec *RefitSpec) (*correction, string) {
	if !d.soft.ready() {
		return nil, errSoft.Error()
	}
	base, inForce := v.unweighted()
	before, after := predictedSample(k), predictedNow(now)
	varies := shift.RatioVariance(before, after)
	if varies == 0 && inForce == nil {
		return nil, "" // all weights would be 1
	}
	s := &d.soft
	if d.k > shift.MaxClasses {
		contrast := shift.Contrast(before, after)
		if inForce == nil && slices.Max(contrast) < leastContrast {
			return nil, "" // as nearly always where nothing has moved: what follows takes time
		}
		made, err := newSoftJoint(k, base, shift.NewPool(contrast))
		if err != nil {
			return nil, err.Error()
		}
		s = &made
	}
	c, err := s.correct(now, varies)
	if err != nil {
		return nil, err.Error()
	}
	if c.Fit.P < spec.Alpha {
		return nil, fmt.Sprintf("label shift does not explain what the model says: p = %.2g", c.Fit.P)
	}
	if c.Ridge > 0 {
		return nil, fmt.Sprintf("classes are confused too much: condition %.3g", c.Condition)
	}
	if is, err := c.news(s, k, now, inForce, spec.Alpha); err != nil {
		return nil, err.Error()
	} else if !is {
		return nil, ""
	}
	if c.cal, err = calibrator.NewClassWeights(base, s.weights(c.Weights, k.K)); err != nil {
		return nil, err.Error()
	}
	if c.digest, err = s.digest(now); err != nil {
		return nil, err.Error()
	}
	return c, ""
}

// correct estimates the weights for predictions now, drawn towards 1 by how much shares vary at all.
func (s *softJoint) correct(now *acc.ClassCounts, varies float64) (*correction, error) {
	e, err := s.estimate(now)
	if err != nil {
		return nil, err
	}
	null, err := shift.ErrorsAt(s.table(now), nil)
	if err != nil {
		return nil, err
	}
	v := make([]float64, len(null))
	for j, se := range null {
		if p := e.Reference[j]; p > 0 { // else its weight is 1
			v[j] = se * se / (p * p)
		}
	}
	shift.Shrink(e.Weights, v, varies)
	return &correction{Estimate: e, moved: variation(presumed(e.Reference, nil, e.Weights), e.Reference)}, nil
}

// news reports whether the shares are others than what is in force presumes, or, where that is fitted, than its rows have: class by class it is off,
// but for no news. Classes that were chosen out of all for having moved are tested as some of all.
func (c *correction) news(s *softJoint, k *keyState, now *acc.ClassCounts, inForce []float64, alpha float64) (bool, error) {
	presume := [][]float64{c.Reference}
	if inForce != nil {
		presume, inForce = nil, pooledWeights(k, s.pool, inForce)
	}
	presume = append(presume, presumed(c.Reference, s.bias, inForce))
	level := alpha * float64(s.pool.Classes()) / float64(k.K)
	shares := presumed(c.Reference, nil, c.Weights)
	for _, q := range presume {
		if variation(shares, q) < leastShift {
			return false, nil
		}
		if sure, err := c.Moved(s.table(now), q, level); err != nil || !sure {
			return false, err
		}
	}
	return true, nil
}

// variation is the total variation of shares.
func variation(p, q []float64) (tv float64) {
	for j := range p {
		tv += math.Abs(p[j]-q[j]) / 2
	}
	return tv
}

// weights are those by class for weights of the pool's classes, in the range that calibrator.ClassWeights have.
func (s *softJoint) weights(pooled []float64, k int) []float64 {
	both, out := make([]float64, len(pooled)), make([]float64, k)
	for j, w := range pooled {
		both[j] = s.bias[j] * min(weightBound, max(1./weightBound, w))
	}
	s.pool.Spread(out, both)
	var mean float64
	for _, w := range out {
		mean += w / float64(k)
	}
	for j := range out { // the mean moves a little, and is made 1 again
		out[j] = min(calibrator.MaxClassWeight/2, max(2*calibrator.MinClassWeight, out[j]/mean))
	}
	return out
}

// pooledWeights are what weights by class do to the shares of the pool's classes.
func pooledWeights(k *keyState, p *shift.Pool, w []float64) []float64 {
	out := make([]float64, p.Classes())
	p.Gather(out, w, sampledLabels(k))
	return out
}

// presumed are the shares that a base under weights w is right for, where under weights u it is for shares p; nil weights are 1.
func presumed(p, u, w []float64) []float64 {
	q := make([]float64, len(p))
	var sum float64
	for j := range q {
		if q[j] = p[j]; u != nil {
			q[j] /= u[j]
		}
		if w != nil {
			q[j] *= w[j]
		}
		sum += q[j]
	}
	for j := range q {
		q[j] /= sum
	}
	return q
}

// propose puts a correction into force, or makes it the candidate of a validation: the paired test on rows whose labels come later decides.
func (t *ModelTask) propose(v *version, k *keyState, in *stage.Pane, c *correction) error {
	encoded, err := calibrator.Encode(c.cal)
	if err != nil {
		return err
	}
	if CheckSize(encoded, t.cfg.MaxBytes) != nil {
		return nil // what is in force fills a record
	}
	back, err := calibrator.Decode(encoded)
	if err != nil {
		return err
	}
	if t.cfg.Refit.LabelShift == ShiftAtOnce {
		d := record.Calibrator{Reason: reasonShift, Method: c.cal.Method(), Outcome: fmt.Sprintf(
			"published: class weights, before labels: shares of classes have moved by %.3f by %d predictions, if %s (test of that: p = %.2g)", c.moved, c.N, c.Assumption, c.Fit.P),
			Evidence: record.Evidence{FitRows: int(c.N), FitFrom: pipeline.Format(in.End), FitTo: pipeline.Format(in.End), FitBegan: pipeline.Format(in.End), FitDigest: c.digest}}
		return t.putInForce(v, k, &d, back, encoded, in.End)
	}
	tr := &trial{reason: reasonShift, base: v.InForceRevision(), started: in.End, due: in.Index, phase: phaseShadow, seed: k.Seed(reasonShift, in.Index),
		methods: []string{c.cal.Method()}, fitRows: c.N, fitFrom: in.End, fitTo: in.End, digest: c.digest}
	for i := range k.Sample {
		tr.weight = max(tr.weight, float64(k.Sample[i].W))
	}
	one := &candidate{fitResult: fitResult{method: c.cal.Method(), encoded: encoded, cal: back}}
	if one.test, err = evalue.NewPaired(nllBound(v.K), 0); err != nil {
		return err
	}
	tr.candidates = []*candidate{one}
	v.refit.trial = tr
	return nil
}
