package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/shift"
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

func (s *scores) rowsOfClass(name string, parity int) classRows {
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

// estimateRow is what was estimated of one set of rows without their labels.
type estimateRow struct {
	title             string
	truth, confidence float64 // accuracy; estimated by the confidence-based method
	cbpe              float64 // by NannyML; NaN where it has not run
	texts             []string
}

// estimateRows estimates the accuracy of rows whose labels no estimate sees.
func estimateRows(s *scores, folder string) ([]estimateRow, error) {
	ref := s.rowsOfClass("resnet20", evens)
	iso, _, err := calibrator.FitIsotonicConfidence(ref.c, ref.right, nil)
	if err != nil {
		return nil, err
	}
	cbpe := map[string]float64{}
	if err := readJSON(filepath.Join(folder, "cbpe.json"), &cbpe); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []estimateRow
	for _, name := range append([]string{"resnet20", ""}, corruptions...) {
		title, now := strings.TrimPrefix(name, "resnet20_"), classRows{}
		switch name {
		case "":
			title, now = "clean, other label shares", s.rowsOfClass("resnet20", odds).skewed()
		case "resnet20":
			now = s.rowsOfClass(name, odds)
		default:
			name = "resnet20_" + name
			now = s.rowsOfClass(name, odds)
		}
		row, err := estimate(ref, now, iso.Map)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		row.title, row.cbpe = title, math.NaN()
		if x, ok := cbpe[name]; ok {
			row.cbpe = x
		}
		out = append(out, row)
	}
	return out, nil
}

// estimateTable is the estimated beside the true accuracy.
func estimateTable(b *strings.Builder, estimates []estimateRow) {
	var rows [][]string
	for _, e := range estimates {
		theirs := ""
		if !math.IsNaN(e.cbpe) {
			theirs = percent(e.cbpe)
		}
		rows = append(rows, append(append([]string{e.title, percent(e.truth)}, e.texts...), theirs))
	}
	table(b, "**Without labels**: accuracy of the odd test rows, estimated from the labelled even clean rows "+
		"(temperature, isotonic regression, confusion matrix) and the odd rows without labels. Z: miss of the "+
		"confidence-based estimate in standard errors, once 500 labels have come.",
		[]string{"rows", "true", "confidence-based", "Z", "label shift (BBSE)", "label shift (EM)",
			"NannyML CBPE"}, rows)
}

// firstLabels is how many labels have come when an estimate is first held against them.
const firstLabels = 500

// estimate applies every method to the rows now, of which only the first labels are seen, and those by Z alone.
func estimate(ref, now classRows, calibrate func(float64) float64) (estimateRow, error) {
	var g acc.Grid
	var right, first float64
	joint, predicted, prior := make([]float64, classes*classes), make([]float64, classes), make([]float64, classes)
	for i, y := range ref.y {
		joint[ref.top[i]*classes+y]++
		prior[y] += 1 / float64(len(ref.y))
	}
	for i, c := range now.c {
		if err := g.Add(c, 1, false); err != nil {
			return estimateRow{}, err
		}
		predicted[now.top[i]]++
		if now.right[i] {
			right++
			if i < firstLabels {
				first++
			}
		}
	}
	e := unlabelled.ConfidenceBased(g.Groups(), calibrate, bins)
	says := make([]int, classes)
	for i := range says {
		says[i] = i
	}
	bbse, err := shift.BBSE(shift.Table{K: classes, Says: says, Joint: joint, Now: predicted})
	if err != nil {
		return estimateRow{}, err
	}
	em, err := shift.EMRows(now.p, prior)
	if err != nil {
		return estimateRow{}, err
	}
	z := e.Against(first, float64(min(firstLabels, len(now.c)))).Z
	return estimateRow{truth: right / float64(len(now.c)), confidence: e.Accuracy,
		texts: []string{interval(e.Accuracy, e.Lo, e.Hi), fmt.Sprintf("%.1f", z),
			interval(bbse.Accuracy, bbse.Lo, bbse.Hi), interval(em.Accuracy, em.Lo, em.Hi)}}, nil
}

func interval(accuracy, lo, hi float64) string {
	return fmt.Sprintf("%s (%.1f..%.1f)", percent(accuracy), 100*lo, 100*hi)
}
