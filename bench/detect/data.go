package main

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// pool is rows to draw from: confidence c, the probability p that such a row is right (its label is drawn anew each
// time), or where p is nil the label itself.
type pool struct {
	c     []float64
	p     []float64
	right []bool
}

// classes is K of the networks' scores.
const classes = 10

// scores are one network's logits on the clean or on corrupted images, with one order of rows.
type scores struct {
	z      map[string][]float32
	labels []int32
	t      float64 // temperature that fits the clean rows
}

const jpeg = "c10jpeg_resnet_logits"

func readScores(folder string) (*scores, error) {
	arrays, err := npy.ReadArchive(filepath.Join(folder, jpeg+".npz"))
	if err != nil {
		return nil, err
	}
	s := &scores{z: map[string][]float32{}, labels: arrays["test_labels"].Int}
	for name, a := range arrays {
		if a.F32 != nil {
			s.z[name] = a.F32
		}
	}
	cal, _, err := calibrator.FitTemperature(calibrator.NewData(s.z["resnet20"], classes, s.labels, nil),
		calibrator.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", jpeg, err)
	}
	s.t = cal.T()
	return s, nil
}

// rows returns the top-label confidences at temperature t·scale and what was right, of the array of that name.
func (s *scores) rows(name string, scale float64) pool {
	z := s.z[name]
	var p pool
	for i, y := range s.labels {
		c, top := confidence(z[i*classes:(i+1)*classes], s.t*scale)
		// Streams are handed to others as float32: all see the same numbers.
		p.c = append(p.c, float64(float32(c)))
		p.right = append(p.right, top == int(y))
	}
	return p
}

func confidence(z []float32, t float64) (c float64, top int) {
	for k, v := range z {
		if v > z[top] {
			top = k
		}
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(float64(v-z[top]) / t)
	}
	return 1 / sum, top
}

// calibrated returns the confidences of clean rows, right with just that probability.
func (s *scores) calibrated() pool {
	p := s.rows("resnet20", 1)
	return pool{c: p.c, p: p.c}
}

// biased returns p with labels drawn at c + bias(c), kept inside [0, 1].
func (p pool) biased(bias func(c float64) float64) pool {
	q := pool{c: p.c, p: make([]float64, len(p.c))}
	for i, c := range p.c {
		q.p[i] = min(1, max(0, p.p[i]+bias(c)))
	}
	return q
}

// distorted returns rows that show the confidence at temperature t·scale, and are right as often as at t.
func (s *scores) distorted(scale float64) pool {
	return pool{c: s.rows("resnet20", scale).c, p: s.calibrated().p}
}
