package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

const (
	// leastShift is the smallest total variation distance between class shares that is worth a correction.
	leastShift = .02
	// weightBound limits the weight of a class, so that a class that did not occur in a window is not ruled out.
	weightBound = 100
	// leastContrast is the contrast below which a correction cannot be significant for any of more than 128 classes. It
	// is 3²; a test at level .01 needs at least 3.9².
	leastContrast = 9
)

// correction is class weights on top of the calibrator in force, with the figures that justify them.
type correction struct {
	cal *calibrator.ClassWeights
	shift.Estimate
	moved  float64 // total variation distance between the shares that the weights lead to and those of the reference
	digest string
}

// propose returns the calibrator in force with weights for the class shares of now. It returns nil if no weights are
// needed, and nil with a reason if none can be found. If there are more classes than can be estimated separately, it
// separates the classes whose predictions have moved most; the others share one weight, that of their sum.
func (d *classDrift) propose(k *stage.Key, now *acc.ClassCounts, alpha float64) (*correction, string) {
	base, inForce := unweighted(k.Version)
	before, after := predictedSample(k), predictedNow(now)
	varies := shift.RatioVariance(before, after)
	if varies == 0 && inForce == nil {
		return nil, "" // all weights would be 1
	}
	contrast := shift.Contrast(before, after)
	if k.K > shift.MaxClasses && inForce == nil && slices.Max(contrast) < leastContrast {
		return nil, "" // usual when nothing has moved; this skips the costly steps below
	}
	s, err := d.current(k, proposedShare)
	if err == nil && k.K > shift.MaxClasses {
		var made softJoint
		made, err = newSoftJoint(k, base, shift.NewPool(contrast))
		s = &made
	}
	if err != nil {
		return nil, err.Error()
	}
	c, err := s.correct(now, varies)
	if err != nil {
		return nil, err.Error()
	}
	if c.Fit.P < alpha {
		return nil, fmt.Sprintf("label shift does not explain what the model says: p = %.2g", c.Fit.P)
	}
	if c.Ridge > 0 {
		return nil, fmt.Sprintf("classes are confused too much: condition %.3g", c.Condition)
	}
	if is, err := c.differs(s, k, now, inForce, alpha); err != nil {
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

// correct estimates the weights for the predictions now. It shrinks them towards 1; strongly if the shares vary little
// overall.
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
		if p := e.Reference[j]; p > 0 { // otherwise its weight is 1
			v[j] = se * se / (p * p)
		}
	}
	shift.Shrink(e.Weights, v, varies)
	return &correction{Estimate: e, moved: variation(presumed(e.Reference, nil, e.Weights), e.Reference)}, nil
}

// differs reports whether the class shares differ from those that the calibrator in force assumes. For a fitted
// calibrator they must also differ from the shares of the rows that it was fitted on: a fit may be off for a class
// although no share has moved. If the classes were selected out of all because they moved most, the level is reduced in
// proportion.
func (c *correction) differs(s *softJoint, k *stage.Key, now *acc.ClassCounts, inForce []float64, alpha float64) (bool,
	error) {
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

// variation returns the total variation distance between two vectors of shares.
func variation(p, q []float64) (tv float64) {
	for j := range p {
		tv += math.Abs(p[j]-q[j]) / 2
	}
	return tv
}

// weights spreads weights of the pool's classes over all classes, within the range that calibrator.ClassWeights allows.
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
	for j := range out { // bias and bounds have moved the mean a little; it becomes 1 again
		out[j] = min(calibrator.MaxClassWeight/2, max(2*calibrator.MinClassWeight, out[j]/mean))
	}
	return out
}

// pooledWeights returns the effect of weights by class on the shares of the pool's classes.
func pooledWeights(k *stage.Key, p *shift.Pool, w []float64) []float64 {
	out := make([]float64, p.Classes())
	p.Gather(out, w, sampledLabels(k))
	return out
}

// presumed returns the shares for which a base with weights w is correct, if with weights u it is correct for shares p.
// nil weights are 1.
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

// digest returns the SHA-256 of the inputs of the class weights: the predictions by class, encoded as in a checkpoint,
// then the probabilities and biases of the latest sampled rows, each as `f64`.
func (s *softJoint) digest(now *acc.ClassCounts) (string, error) {
	b, err := now.AppendBinary(nil)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(binenc.AppendFloat64s(binenc.AppendFloat64s(b, s.joint...), s.bias...))
	return stage.DigestPrefix + hex.EncodeToString(sum[:]), nil
}
