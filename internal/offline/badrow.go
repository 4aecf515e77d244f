package offline

import (
	"fmt"
	"math"

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
	if t.Single {
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
				return fmt.Errorf("row %d, column %s: %s, allowed are %s%s", i, scoreColumn(t, k), badScore(x),
					allowedScores(t.Probs), percentages(t, row))
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

// percentages says what to do where a row of probabilities sums to 100; else "".
func percentages[T kernel.Float](t *table.Table, row []T) string {
	sum := 0.0
	for _, x := range row {
		sum += float64(x)
	}
	if !t.Probs || t.Single || !(math.Abs(sum-100) <= 1) { // a NaN sums to NaN
		return ""
	}
	return "; the row sums to 100: divide percentages by 100"
}

// badScore is the text of x. An empty cell and a null are NaN in a table.
func badScore(x float64) string {
	if math.IsNaN(x) {
		return "NaN or no value"
	}
	return fmt.Sprintf("%g", x)
}

func allowedScores(probs bool) string {
	if probs {
		return "values in [0, 1]"
	}
	return "finite values"
}

// scoreColumn returns the name of the score of class k: of its column, where it has one, else what CSV files call it.
func scoreColumn(t *table.Table, k int) string {
	switch {
	case t.Single:
		return t.Columns[0]
	case len(t.Columns) == t.K:
		return t.Columns[k]
	case t.Probs:
		return fmt.Sprintf("probs_%d", k)
	}
	return fmt.Sprintf("logits_%d", k)
}
