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
	// absentShare is the most that the labels of a class are of those that the scores expect where they are missing.
	absentShare = .05
	// absentChance is the chance, by the scores, that rows have so few labels of a class by themselves, over all
	// classes.
	absentChance = 1e-4
	// absentRows is the most rows, the newest, by which that chance is judged, and absentScores the most scores.
	absentRows   = 2000
	absentScores = 400_000
)

// Biased says why the sampled rows since an event time are not like the predictions that have no label yet; "" where
// nothing says so. What is learnt from them would be wrong. settled is SettledInOrder or SettledSince.
func Biased(k *Key, since, settled int64) (string, error) {
	if why, err := Withheld(k, since); why != "" || err != nil || k.Aged {
		return why, err
	}
	return k.soonerYet(max(since, k.Began), settled), nil
}

// Withheld says which labels are missing, those of a class, or of predictions that were right, or wrong; "" where none
// is: the n newest sampled rows since an event time have n_c such labels, which by the scores had nearly no chance, and
// so many predictions of their time have no label that these could be the missing ones,
//
//	n_c ≤ .05 E,  P(n_c or fewer) < 10⁻⁴/classes,  predictions - labelled ≥ labelled·(E - n_c)/n,  E = Σ p_c
//
// with p_c the probability of the class, of the predicted class, or of any other. Predictions count that are older than
// most labels take, once that is known: newer ones have none for that reason alone. The chance is Π (1 - p_c) for none,
// else at most e^(n_c - E) (E/n_c)^n_c (Chernoff). It cannot tell such a class from one that hardly comes any more
// where some predictions never get a label.
func Withheld(k *Key, since int64) (string, error) {
	most := max(1, min(absentRows, absentScores/k.K))
	rows, of := make([]*acc.SampleRow, 0, most), make([]float64, k.K+2)
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := len(k.Sample) - 1; i >= 0 && len(rows) < most; i-- { // the newest are the last
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		rows, from, to = append(rows, row), min(from, row.TS), max(to, row.TS)
		of[row.Y]++
		if of[k.K]++; row.Z[row.Y] < slices.Max(row.Z) {
			of[k.K], of[k.K+1] = of[k.K]-1, of[k.K+1]+1
		}
	}
	n := float64(len(rows))
	if n == 0 || slices.Min(of) > absentShare*n || k.Covered == nil {
		return "", nil
	}
	if before, known := k.labelledBefore(); before >= from {
		to = min(to, before)
	} else if known {
		return "", nil
	}
	predictions, labelled, err := k.Covered(from, to)
	if err != nil || labelled >= predictions || labelled == 0 {
		return "", err
	}
	expected, none := make([]float64, k.K+2), make([]float64, k.K+2)
	sc, p := NewScorer(k.K), make([]float64, k.K, k.K+2)
	for _, row := range rows {
		if _, err := sc.Row(nil, row, math.Inf(1)); err != nil {
			return "", err
		}
		sc.Probs(p)
		top := slices.Max(p)
		for c, x := range append(p, top, 1-top) {
			expected[c] += x
			none[c] += math.Log1p(-min(x, 1-1e-9))
		}
	}
	open := float64(predictions - labelled)
	for c, has := range of {
		e := expected[c]
		chance := none[c]
		if has > 0 {
			chance = has - e + has*math.Log(e/has)
		}
		if has > absentShare*e || chance >= math.Log(absentChance/float64(k.K)) || open < (e-has)/n*float64(labelled) {
			continue
		}
		what, these := fmt.Sprintf("are of class %d", c), "of that class. If its labels come"
		switch c {
		case k.K:
			what, these = "say that the model was right", "right. If labels of right predictions come"
		case k.K + 1:
			what, these = "say that the model was wrong", "wrong. If labels of wrong predictions come"
		}
		return fmt.Sprintf("%.0f of %.0f labels %s, where the scores expect %.0f, and %.0f %% of the predictions of "+
			"that time have no label: these may be %s later than others, set alarm.matured to the longest delay",
			has, n, what, e, 100*open/float64(predictions), these), nil
	}
	return "", nil
}
