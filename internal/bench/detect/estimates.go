package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
)

// evens are the rows of the labelled reference, odds those of which the accuracy is estimated.
const (
	evens = 0
	odds  = 1
)

// classRows are the rows of one parity at the temperature t: probabilities, prediction and label.
type classRows struct {
	p      []float64 // n×classes
	top, y []int
	c      []float64
	right  []bool
}

func (s *scores) classRows(name string, parity int) classRows {
	z := s.z[name]
	var out classRows
	for i := parity; i < len(s.labels); i += 2 {
		row := z[i*classes : (i+1)*classes]
		c, top := confidence(row, s.t)
		for _, v := range row {
			out.p = append(out.p, c*math.Exp(float64(v-row[top])/s.t))
		}
		y := int(s.labels[i])
		out.top, out.y = append(out.top, top), append(out.y, y)
		out.c, out.right = append(out.c, c), append(out.right, top == y)
	}
	return out
}

// skewed draws rows again with the share of class k in proportion to 2^-k: nothing but the label shares moves.
func (r classRows) skewed() classRows {
	rng := rand.New(rand.NewPCG(1, 2))
	var out classRows
	for i, y := range r.y {
		copies := 0
		for x := 4 * math.Exp2(-float64(y)/1.5); x > 0; x-- {
			if rng.Float64() < x {
				copies++
			}
		}
		for range copies {
			out.p = append(out.p, r.p[i*classes:(i+1)*classes]...)
			out.top, out.y = append(out.top, r.top[i]), append(out.y, y)
			out.c, out.right = append(out.c, r.c[i]), append(out.right, r.right[i])
		}
	}
	return out
}

// estimateTable is the estimated beside the true accuracy, of rows whose labels no estimate saw.
func estimateTable(b *strings.Builder, s *scores, folder string) error {
	ref := s.classRows("resnet20", evens)
	iso, _, err := calibrator.FitIsotonicConfidence(ref.c, ref.right, nil)
	if err != nil {
		return err
	}
	cbpe := map[string]float64{}
	if err := readJSON(filepath.Join(folder, "cbpe.json"), &cbpe); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var rows [][]string
	names := []string{"resnet20", "resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3", "resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5", ""}
	for _, name := range names {
		title, now := name, classRows{}
		if name == "" {
			title, now = "clean, other label shares", s.classRows("resnet20", odds).skewed()
		} else {
			now = s.classRows(name, odds)
		}
		line, err := estimateRow(ref, now, iso.Map)
		if err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
		theirs := ""
		if x, ok := cbpe[name]; ok {
			theirs = percent(x)
		}
		rows = append(rows, append(append([]string{strings.TrimPrefix(title, "resnet20_")}, line...), theirs))
	}
	table(b, "**Without labels**: accuracy of the odd test rows, estimated from the labelled even clean rows (temperature, isotonic regression, confusion matrix) and the odd rows without labels. Z: miss of the confidence-based estimate in standard errors, once 500 labels have come.",
		[]string{"rows", "true", "confidence-based", "Z", "label shift (BBSE)", "label shift (EM)", "NannyML CBPE"}, rows)
	return nil
}

func estimateRow(ref, now classRows, calibrate func(float64) float64) ([]string, error) {
	var g acc.Grid
	var right float64
	joint, predicted, prior := make([]float64, classes*classes), make([]float64, classes), make([]float64, classes)
	for i, y := range ref.y {
		joint[ref.top[i]*classes+y]++
		prior[y] += 1 / float64(len(ref.y))
	}
	for i, c := range now.c {
		if err := g.Add(c, 1, false); err != nil {
			return nil, err
		}
		predicted[now.top[i]]++
		if now.right[i] {
			right++
		}
	}
	n := float64(len(now.c))
	const labels = 500
	first := float64(len(slices.DeleteFunc(slices.Clone(now.right[:labels]), func(r bool) bool { return !r })))
	e := unlabelled.ConfidenceBased(g.Groups(), calibrate, bins)
	shift, err := unlabelled.LabelShift(joint, predicted)
	if err != nil {
		return nil, err
	}
	em, err := unlabelled.EM(now.p, prior)
	if err != nil {
		return nil, err
	}
	return []string{percent(right / n), interval(e), fmt.Sprintf("%.1f", e.Against(first, labels).Z), interval(shift.Estimate), interval(em.Estimate)}, nil
}

func interval(e unlabelled.Estimate) string {
	return fmt.Sprintf("%s (%.1f..%.1f)", percent(e.Accuracy), 100*e.Lo, 100*e.Hi)
}
