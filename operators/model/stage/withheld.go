package stage

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
)

// Labels may be of one class only, such as of the frauds that a bank reports, or come much later for one class. A fit
// of the other rows learns that a class never comes.
const (
	// absentChance is the chance, by the scores, that rows have no label of a class by themselves, over all classes.
	absentChance = 1e-4
	// absentRows is the most rows, the newest, by which that chance is judged.
	absentRows = 2000
)

// Withheld says which class labels are missing of; "" where none is: the sampled rows since an event time have no
// label of it although by the scores that had nearly no chance, and so many predictions of their time have no label
// that these could be of the class,
//
//	Π (1 - p_c) < 10⁻⁴/classes,  predictions - labelled ≥ labelled·Σ p_c/n   over the n newest rows
//
// It cannot tell such a class from one that never comes any more where some predictions never get a label.
func Withheld(k *Key, since int64) (string, error) {
	seen, rows := make([]bool, k.K), make([]*acc.SampleRow, 0, absentRows)
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := len(k.Sample) - 1; i >= 0; i-- { // the newest are the last
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		if seen[row.Y] = true; len(rows) < absentRows {
			rows, from, to = append(rows, row), min(from, row.TS), max(to, row.TS)
		}
	}
	if len(rows) == 0 || !slices.Contains(seen, false) || k.Covered == nil {
		return "", nil
	}
	predictions, labelled, err := k.Covered(from, to)
	if err != nil || labelled >= predictions || labelled == 0 {
		return "", err
	}
	expected, chance := make([]float64, k.K), make([]float64, k.K)
	z, p := make([]float64, k.K), make([]float64, k.K)
	for _, row := range rows {
		for j, x := range row.Z {
			z[j] = float64(x)
		}
		if _, _, err := Evaluate(nil, z, p, int(row.Y)); err != nil {
			return "", err
		}
		for c, x := range p {
			expected[c] += x
			chance[c] += math.Log1p(-min(x, 1-1e-9))
		}
	}
	n, open := len(rows), float64(predictions-labelled)
	for c := range seen {
		if !seen[c] && chance[c] < math.Log(absentChance/float64(k.K)) &&
			open >= expected[c]/float64(n)*float64(labelled) {
			return fmt.Sprintf("no label of %d rows is of class %d, where the scores expect %.0f, and %.0f %% of the "+
				"predictions of that time have no label: these may be of that class. If its labels come later than "+
				"others, set alarm.matured to the longest delay", n, c, expected[c], 100*open/float64(predictions)), nil
		}
	}
	return "", nil
}
