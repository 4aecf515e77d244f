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
	if mayRepeat(k) {
		return "all labels of predictions with equal scores agree: more rows must tell whether they are repeats", nil
	}
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
// where some predictions never get a label. Of a class that only a part of the labels of come, see thinned.
func Withheld(k *Key, since int64) (string, error) { return WithheldBetween(k, since, math.MaxInt64) }

// WithheldBetween is Withheld of the predictions since an event time and before another.
func WithheldBetween(k *Key, since, before int64) (string, error) {
	l, err := newestLabels(k, since, before, absentRows)
	if l == nil || err != nil {
		return "", err
	}
	if why := l.absent(); why != "" {
		return why, nil
	}
	why, err := l.thinned()
	if all := min(len(k.Sample), absentScores/k.K); why != "" || err != nil || len(l.rows) < l.most || all <= l.most {
		return why, err
	}
	// What the newest rows leave open, all may tell.
	if l, err = newestLabels(k, since, before, len(k.Sample)); l == nil || err != nil {
		return "", err
	}
	return l.thinned()
}

// labels are the newest sampled rows since an event time, with the predictions of their time.
type labels struct {
	key     *Key
	most    int
	rows    []*acc.SampleRow
	to      int64 // the newest predictions that covered has
	covered Coverage
	// By class, of the predicted class, and of any other: the labels; the sums of their probabilities p and of
	// p (1 - p), and the logarithm of the chance of none.
	of, expected, variance, none []float64
}

// newestLabels returns nil where no predictions of the time of the rows, at most that many, lack a label that they
// should have by now.
func newestLabels(k *Key, since, before int64, most int) (*labels, error) {
	if k.Covered == nil {
		return nil, nil
	}
	l := &labels{key: k, most: max(1, min(most, absentScores/k.K))}
	l.of, l.expected = make([]float64, k.K+2), make([]float64, k.K+2)
	l.variance, l.none = make([]float64, k.K+2), make([]float64, k.K+2)
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := len(k.Sample) - 1; i >= 0 && len(l.rows) < l.most; i-- { // the newest are the last
		if row := &k.Sample[i]; row.TS >= since && row.TS < before {
			l.rows, from, to = append(l.rows, row), min(from, row.TS), max(to, row.TS)
		}
	}
	if len(l.rows) == 0 {
		return nil, nil
	}
	if before, known := k.labelledBefore(); before >= from {
		to = min(to, before)
	} else if known {
		return nil, nil
	}
	l.to = to
	var err error
	if l.covered, err = k.Covered(from, to); err != nil || l.covered.Labelled == 0 || l.open() <= 0 {
		return nil, err
	}
	sc, p := NewScorer(k.K), make([]float64, k.K, k.K+2)
	for _, row := range l.rows {
		if _, err := sc.Row(nil, row, math.Inf(1)); err != nil {
			return nil, err
		}
		sc.Probs(p)
		top := slices.Max(p)
		for c, x := range append(p, top, 1-top) {
			l.expected[c], l.variance[c] = l.expected[c]+x, l.variance[c]+x*(1-x)
			l.none[c] += math.Log1p(-min(x, 1-1e-9))
		}
		l.of[row.Y]++
		if l.of[k.K]++; row.Z[row.Y] < slices.Max(row.Z) {
			l.of[k.K], l.of[k.K+1] = l.of[k.K]-1, l.of[k.K+1]+1
		}
	}
	return l, nil
}

// open is the number of predictions without a label.
func (l *labels) open() float64 { return float64(l.covered.Predictions - l.covered.Labelled) }

// absent is what Withheld says of labels that hardly come.
func (l *labels) absent() string {
	k, n, open, predictions := l.key.K, float64(len(l.rows)), l.open(), float64(l.covered.Predictions)
	for c, has := range l.of {
		e, chance := l.expected[c], l.none[c]
		if has > 0 {
			chance = has - e + has*math.Log(e/has)
		}
		if has > absentShare*e || chance >= math.Log(absentChance/float64(k)) ||
			open < (e-has)/n*float64(l.covered.Labelled) {
			continue
		}
		what, these := fmt.Sprintf("are of class %d", c), "of that class. If its labels come"
		switch c {
		case k:
			what, these = "say that the model was right", "right. If labels of right predictions come"
		case k + 1:
			what, these = "say that the model was wrong", "wrong. If labels of wrong predictions come"
		}
		return fmt.Sprintf("%.0f of %.0f labels %s, where the scores expect %.0f, and %.0f %% of the predictions of "+
			"that time have no label: these may be %s later than others, set alarm.matured to the longest delay",
			has, n, what, e, 100*open/predictions, these)
	}
	return ""
}
