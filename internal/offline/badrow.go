package offline

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/kernel"
)

// BadRow returns an error that names the first row with an invalid score or weight, and the column; nil if all are
// valid. Rows are counted from 0. If labelled is true, rows without a label are skipped.
func BadRow(t *table.Table, labelled bool) error {
	if t.Scores64 != nil {
		return badRowOf(t, t.Scores64, labelled)
	}
	return badRowOf(t, t.Scores32, labelled)
}

func badRowOf[T kernel.Float](t *table.Table, scores []T, labelled bool) error {
	p := make([]float64, t.K)
	first := 0
	if oneColumn(t) {
		first = 1 // class 0 is derived from class 1
	}
	for i := range t.N {
		if labelled && (t.Label == nil || t.Label[i] < 0) {
			continue
		}
		row := scores[i*t.K : (i+1)*t.K]
		for k := first; k < t.K; k++ {
			x := float64(row[k])
			if math.IsNaN(x) || math.IsInf(x, 0) || t.Probs && (x < 0 || x > 1) {
				return fmt.Errorf("row %d, column %s: %g, allowed are %s", i, scoreColumn(t, k), x,
					allowedScores(t.Probs))
			}
		}
		if t.Probs {
			if _, ok := kernel.Probs(row, p); !ok {
				var sum float64
				for _, v := range row {
					sum += float64(v)
				}
				return fmt.Errorf("row %d, columns probs: sum %.6g, allowed is within 0.05 of 1", i, sum)
			}
		}
		if t.Weight != nil {
			if w := float64(t.Weight[i]); !(w >= 0) || math.IsInf(w, 0) {
				return fmt.Errorf("row %d, column weight: %g, allowed are finite values from 0", i, w)
			}
		}
	}
	return nil
}

func allowedScores(probs bool) string {
	if probs {
		return "values in [0, 1]"
	}
	return "finite values"
}

// scoreColumn returns the name that CSV files use for the score of class k.
func scoreColumn(t *table.Table, k int) string {
	name := "logits"
	if t.Probs {
		name = "probs"
	}
	if oneColumn(t) {
		return strings.TrimSuffix(name, "s")
	}
	return fmt.Sprintf("%s_%d", name, k)
}

// oneColumn reports whether the scores are the single column logit or prob of a binary classifier.
func oneColumn(t *table.Table) bool {
	return t.Source == "column logit" || t.Source == "columns logit" || t.Source == "column prob" ||
		t.Source == "columns prob"
}
