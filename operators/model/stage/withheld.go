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
//	Π (1 - p_c) < 10⁻⁴/classes,  predictions - labelled ≥ labelled·Σ p_c/n   over n rows
func Withheld(k *Key, since int64) (string, error) {
	seen, n := make([]bool, k.K), 0
	for i := range k.Sample {
		if row := &k.Sample[i]; row.TS >= since {
			seen[row.Y], n = true, n+1
		}
	}
	if n == 0 || !slices.Contains(seen, false) || k.Covered == nil {
		return "", nil
	}
	rows := make([]acc.SampleRow, 0, n)
	for i := range k.Sample {
		if k.Sample[i].TS >= since {
			rows = append(rows, k.Sample[i])
		}
	}
	slices.SortFunc(rows, CompareRows)
	rows = rows[max(0, n-absentRows):]
	predictions, labelled, err := k.Covered(rows[0].TS, rows[len(rows)-1].TS)
	if err != nil || labelled >= predictions || labelled == 0 {
		return "", err
	}
	expected, chance := make([]float64, k.K), make([]float64, k.K)
	z, p := make([]float64, k.K), make([]float64, k.K)
	for i := range rows {
		for j, x := range rows[i].Z {
			z[j] = float64(x)
		}
		if _, _, err := Evaluate(nil, z, p, int(rows[i].Y)); err != nil {
			return "", err
		}
		for c, x := range p {
			expected[c] += x
			chance[c] += math.Log1p(-min(x, 1-1e-9))
		}
	}
	open := float64(predictions-labelled) / float64(labelled)
	for c := range seen {
		if !seen[c] && chance[c] < math.Log(absentChance/float64(k.K)) && open >= expected[c]/float64(len(rows)) {
			return fmt.Sprintf("no label of %d rows is of class %d, where the scores expect %.0f, and %.0f %% of the "+
				"predictions of that time have no label: perhaps they are of that class (alarm.matured)", len(rows), c,
				expected[c], 100*float64(predictions-labelled)/float64(predictions)), nil
		}
	}
	return "", nil
}
