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
	"github.com/plumbline/plumbline/operators/model/stage"
)

const (
	// leastShift is the total variation of shares that is worth a correction.
	leastShift = .02
	// weightBound keeps a class from being ruled out by a window in which it did not come.
	weightBound = 100
	// leastContrast is below what can be sure of the share of one of more than 128 classes: 3² of the 3.9² and more
	// that a test at .01 asks for.
	leastContrast = 9
)

// correction is class weights on the calibrator in force, and why.
type correction struct {
	cal *calibrator.ClassWeights
	shift.Estimate
	moved  float64 // total variation of the shares that the weights are for from the reference's
	digest string
}

// correction is the calibrator in force with weights for the shares of now; nil where it needs none, or none is known.
// Of more classes than can be told apart those whose predictions have moved most are, and the others have the weight of
// their sum.
func (d *classDrift) correction(k *stage.Key, now *acc.ClassCounts, alpha float64) (*correction, string) {
	if !d.soft.ready() {
		return nil, errSoft.Error()
	}
	base, inForce := unweighted(k.Version)
	before, after := predictedSample(k), predictedNow(now)
	varies := shift.RatioVariance(before, after)
	if varies == 0 && inForce == nil {
		return nil, "" // all weights would be 1
	}
	s := &d.soft
	if k.K > shift.MaxClasses {
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
	if c.Fit.P < alpha {
		return nil, fmt.Sprintf("label shift does not explain what the model says: p = %.2g", c.Fit.P)
	}
	if c.Ridge > 0 {
		return nil, fmt.Sprintf("classes are confused too much: condition %.3g", c.Condition)
	}
	if is, err := c.news(s, k, now, inForce, alpha); err != nil {
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

// news reports whether the shares are others than what is in force presumes, or, where that is fitted, than its rows
// have: class by class it is off, but for no news. Classes that were chosen out of all for having moved are tested as
// some of all.
func (c *correction) news(s *softJoint, k *stage.Key, now *acc.ClassCounts, inForce []float64, alpha float64) (bool,
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
func pooledWeights(k *stage.Key, p *shift.Pool, w []float64) []float64 {
	out := make([]float64, p.Classes())
	p.Gather(out, w, sampledLabels(k))
	return out
}

// presumed are the shares that a base under weights w is right for, where under weights u it is for shares p; nil
// weights are 1.
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

// digest is the SHA-256 of what class weights are made of: the predictions by class, as a checkpoint has them, and the
// probabilities and biases of the latest sampled rows, each as `f64`.
func (s *softJoint) digest(now *acc.ClassCounts) (string, error) {
	b, err := now.AppendBinary(nil)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(appendFloats(appendFloats(b, s.joint...), s.bias...))
	return stage.DigestPrefix + hex.EncodeToString(sum[:]), nil
}
