package main

import (
	"math"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// folds of the rows that calibrators are fitted on, to choose one.
const folds = 2

// calibrate fits every method of package calibrator on the current head, takes that of the lowest NLL on rows it was
// not fitted on, and fits it again on all.
func (t *trial) calibrate(p problem) error {
	z, k := logitsOf(p.in.Current, p.cal), p.cal.K
	best := math.Inf(1)
	for _, m := range calibrator.Methods() {
		if strings.HasPrefix(m.Name, "metacal") { // gives rows up
			continue
		}
		if nll := crossNLL(m.Name, z, p.cal.Y, k); nll < best {
			best, t.Chosen = nll, m.Name
		}
	}
	if t.Chosen == "" {
		return errNoCalibrator
	}
	c, _, err := calibrator.Fit(t.Chosen, calibrator.NewData(z, k, p.cal.Y, nil), calibrator.Options{})
	if err != nil {
		return err
	}
	probs := make([]float64, p.test.N()*k)
	if err := calibrator.ApplyRows(c, probs, logitsOf(p.in.Current, p.test), k, false); err != nil {
		return err
	}
	t.Plain, err = rateRows(metric.Rows{K: k, F64: probs, Probs: true, Labels: p.test.Y})
	t.Plain.ValidNLL = best
	t.Tempered = t.Plain
	return err
}

// crossNLL is the NLL of rows under the calibrator of the other fold, infinite where it cannot be fitted.
func crossNLL(method string, z []float32, y []int32, k int) float64 {
	var sum float64
	for fold := range folds {
		var fz, tz []float32
		var fy, ty []int32
		for i, label := range y {
			if i%folds == fold {
				tz, ty = append(tz, z[i*k:(i+1)*k]...), append(ty, label)
			} else {
				fz, fy = append(fz, z[i*k:(i+1)*k]...), append(fy, label)
			}
		}
		c, _, err := calibrator.Fit(method, calibrator.NewData(fz, k, fy, nil), calibrator.Options{})
		if err != nil {
			return math.Inf(1)
		}
		probs := make([]float64, len(tz))
		if err := calibrator.ApplyRows(c, probs, tz, k, false); err != nil {
			return math.Inf(1)
		}
		b, err := metric.Basic(metric.Rows{K: k, F64: probs, Probs: true, Labels: ty}, metric.Options{})
		if err != nil {
			return math.Inf(1)
		}
		sum += b.NLL / folds
	}
	return sum
}
