package stage

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/kernel"
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
	if why, err := l.absent(); why != "" || err != nil {
		return why, err
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
	said    []kernel.Row // what the model said of them
	to      int64        // the newest predictions that covered has
	covered Coverage
	// By class, of the predicted class, and of any other: the labels, and the sums of their probabilities p and of
	// p (1 - p).
	of, expected, variance []float64
}

// newestLabels returns nil where no predictions of the time of the rows, at most that many, lack a label that they
// should have by now.
func newestLabels(k *Key, since, before int64, most int) (*labels, error) {
	if k.Covered == nil {
		return nil, nil
	}
	l := &labels{key: k, most: max(1, min(most, absentScores/k.K))}
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
	return l, l.count()
}

// count fills what the rows have and expect.
func (l *labels) count() error {
	k := l.key.K
	l.of, l.expected, l.variance = make([]float64, k+2), make([]float64, k+2), make([]float64, k+2)
	l.said = make([]kernel.Row, len(l.rows))
	return l.scored(func(i int, e []float32, r kernel.Row) {
		expected, variance := l.expected[:len(e)], l.variance[:len(e)]
		for c, v := range e {
			x := float64(v) * r.Scale
			expected[c] += x
			variance[c] += x * (1 - x)
		}
		for c, x := range [...]float64{r.Conf, 1 - r.Conf} {
			l.expected[k+c], l.variance[k+c] = l.expected[k+c]+x, l.variance[k+c]+x*(1-x)
		}
		row := l.rows[i]
		l.said[i] = r
		l.of[row.Y]++
		if row.Z[row.Y] < row.Z[r.Arg] {
			l.of[k+1]++
		} else {
			l.of[k]++
		}
	})
}

// scored calls f with every row's part of what kernel.LogitRows leaves.
func (l *labels) scored(f func(i int, e []float32, r kernel.Row)) error {
	var one [1]kernel.Row
	e := make([]float32, l.key.K)
	for i, row := range l.rows {
		if kernel.LogitRows(one[:], e, row.Z, len(row.Z), 1); !one[0].OK {
			return errNotFinite
		}
		f(i, e, one[0])
	}
	return nil
}

// probabilities are those of classes, or of the predicted one, or of any other, by row.
func (l *labels) probabilities(classes []int) ([][]float64, error) {
	if len(classes) == 0 {
		return nil, nil
	}
	all, k := make([]float64, len(l.rows)*len(classes)), l.key.K
	out := make([][]float64, len(classes))
	for i := range out {
		out[i] = all[i*len(l.rows):][:len(l.rows)]
	}
	return out, l.scored(func(i int, e []float32, r kernel.Row) {
		for at, c := range classes {
			switch c {
			case k:
				out[at][i] = r.Conf
			case k + 1:
				out[at][i] = 1 - r.Conf
			default:
				out[at][i] = float64(e[c]) * r.Scale
			}
		}
	})
}

// open is the number of predictions without a label.
func (l *labels) open() float64 { return float64(l.covered.Predictions - l.covered.Labelled) }

// surest is the most that a probability counts where the chance of none is taken.
const surest = 1 - 1e-9

// absent is what Withheld says of labels that hardly come.
func (l *labels) absent() (string, error) {
	n, open, least := float64(len(l.rows)), l.open(), math.Log(absentChance/float64(l.key.K))
	var never []int // classes without a label, all before the first one with too few
	first := -1
	for c := 0; c < len(l.of) && first < 0; c++ {
		has, e := l.of[c], l.expected[c]
		switch {
		case has > absentShare*e || open < (e-has)/n*float64(l.covered.Labelled):
		case has > 0:
			if has-e+has*math.Log(e/has) < least {
				first = c
			}
		case e*math.Log1p(-surest)/surest < least: // the chance is at least the power e of that of one so sure
			never = append(never, c)
		}
	}
	p, err := l.probabilities(never)
	if err != nil {
		return "", err
	}
	for at, c := range never {
		var chance float64
		for _, x := range p[at] {
			chance += math.Log1p(-min(x, surest))
		}
		if chance < least {
			return l.lacks(c), nil
		}
	}
	if first >= 0 {
		return l.lacks(first), nil
	}
	return "", nil
}

// lacks says of a class that its labels are too few.
func (l *labels) lacks(c int) string {
	what, these := fmt.Sprintf("are of class %d", c), "of that class. If its labels come"
	switch c {
	case l.key.K:
		what, these = "say that the model was right", "right. If labels of right predictions come"
	case l.key.K + 1:
		what, these = "say that the model was wrong", "wrong. If labels of wrong predictions come"
	}
	return fmt.Sprintf("%.0f of %d labels %s, where the scores expect %.0f, and %.0f %% of the predictions of "+
		"that time have no label: these may be %s later than others, set alarm.matured to the longest delay",
		l.of[c], len(l.rows), what, l.expected[c], 100*l.open()/float64(l.covered.Predictions), these)
}
