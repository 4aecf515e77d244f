package operators

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// What a calibrator gained on the rows of a test is what it gains on the next ones where rows do not depend on each other. Where classes or
// domains come in runs, the rows of one run prove that the calibrator is better in that run. So what is to be published must also have an outlook:
//
//	ḡ - z·√(V/n + (V - V₀)/h) > 0
//
// with ḡ the mean gain by weight on the n rows of the test, V₀ and V the variances of the gains of single rows and in the long run, measured on
// the sampled rows, and h the rows of which a refit may be next. It is a bound of the expected gain on these h rows: the first term is what the
// test does not know of the mean, the second how far the mean of h rows is from it. Where rows do not depend on each other V = V₀.

// outlookZ is the quantile of the normal distribution at 99 %.
const outlookZ = 2.33

const (
	// outlookBlock is the number of rows of the shortest runs that are compared.
	outlookBlock = 50
	// leastRuns is how many runs of a length it takes for their variance to count.
	leastRuns = 4
)

// gainSum is Σw·x and Σw of a block of rows, x the gain in NLL of one calibrator over another.
type gainSum struct{ wx, w float64 }

// steadiest is the candidate that may be published whose gain is the surest to last, -1 where none's is.
func (t *ModelTask) steadiest(v *version, k *keyState) (int, error) {
	best, most := -1, 0.0
	for i, c := range v.refit.trial.candidates {
		if v.refit.trial.verdict(c, &t.cfg.Refit) != "" {
			continue
		}
		low, err := t.outlookOf(v, k, c)
		if err != nil {
			return -1, err
		}
		if low > most {
			best, most = i, low
		}
	}
	return best, nil
}

// outlookOf is the bound of the gain of a trial's candidate. What came before the alarm, or the shift of shares, that the refit answers is apart:
// that the gain was another one then is no sign that it will not last.
func (t *ModelTask) outlookOf(v *version, k *keyState, c *candidate) (float64, error) {
	tr, since := v.refit.trial, int64(math.MinInt64)
	if tr.reason != reasonPeriod {
		since = tr.fitFrom
	}
	mean, _ := c.diff()
	return t.outlook(v, k, c.cal, -mean, c.score.w, since)
}

// unsure says that the gain of a candidate with all the evidence may not last; "" where it has not all of it.
func (t *ModelTask) unsure(v *version, k *keyState, c *candidate) (string, error) {
	if v.refit.trial.verdict(c, &t.cfg.Refit) != "" {
		return "", nil
	}
	low, err := t.outlookOf(v, k, c)
	if err != nil || low > 0 {
		return "", err
	}
	mean, _ := c.diff()
	return fmt.Sprintf("NLL fell by %.5f, but from run to run of the rows that varies: by %.5f at least on the next", -mean, low), nil
}

// outlook is the lower bound of the expected gain of a calibrator over the one in force on the next FreshRows rows, where it was mean on rows of
// weight w, and a change came at the event time since (math.MinInt64: none did).
func (t *ModelTask) outlook(v *version, k *keyState, other calibrator.Calibrator, mean, w float64, since int64) (float64, error) {
	var current calibrator.Calibrator
	if f := v.newest(); f != nil {
		current = f.cal
	}
	var parts [][]gainSum
	before, after := apart(k.sample, since, t.cfg.Refit.FreshRows)
	for _, rows := range [][]acc.SampleRow{before, after} {
		g, err := gains(v.k, rows, current, other)
		if err != nil {
			return 0, err
		}
		parts = append(parts, g)
	}
	short, long := longRun(parts)
	next := float64(max(t.cfg.Refit.FreshRows, leastValidation))
	if n := len(k.sample); n > 0 {
		next *= weightOf(k.sample) / float64(n)
	}
	return mean - outlookZ*math.Sqrt(long/w+(long-short)/next), nil
}

func weightOf(rows []acc.SampleRow) (w float64) {
	for i := range rows {
		w += float64(rows[i].W)
	}
	return w
}

// apart cuts rows at an event time, and leaves out so many before it: since when something changed is an estimate.
func apart(rows []acc.SampleRow, since int64, gap int) (before, after []acc.SampleRow) {
	at := 0
	for i := range rows {
		if rows[i].TS < since {
			at = i + 1
		}
	}
	return rows[:max(0, at-gap)], rows[at:]
}

// gains are those of a calibrator over the one in force, in blocks of outlookBlock rows in their order.
func gains(classes int, rows []acc.SampleRow, current, other calibrator.Calibrator) (out []gainSum, err error) {
	sc, bound := newScorer(classes), nllBound(classes)
	for i := range rows {
		row := &rows[i]
		was, err := sc.row(current, row, bound)
		if err != nil {
			return nil, err
		}
		now, err := sc.row(other, row, bound)
		if err != nil {
			return nil, err
		}
		if i%outlookBlock == 0 {
			out = append(out, gainSum{})
		}
		b := &out[len(out)-1]
		b.wx += float64(row.W) * (was.nll - now.nll)
		b.w += float64(row.W)
	}
	return out, nil
}

// longRun is n·Var(mean of n rows) by unit of weight: for a block, which is that of single rows where they are independent, and in the long run,
// the largest over runs of 1, 2, 4, … blocks, of longer ones less a standard error of the estimate. Each part has a mean of its own.
func longRun(parts [][]gainSum) (short, long float64) {
	for l := 1; ; l *= 2 {
		square, weight, runs, free := 0.0, 0.0, 0, 0
		for _, p := range parts {
			s, w, n := spread(p, l)
			square, weight, runs, free = square+s, weight+w, runs+n, free+max(n-1, 0)
		}
		if runs < leastRuns || weight <= 0 {
			return short, long
		}
		x := square / weight
		if l == 1 {
			short, long = x, x
			continue
		}
		long = max(long, x/(1+math.Sqrt(2/float64(free))))
	}
}

// spread is n/(n-1)·Σ(sum of a run - its share of all)² over the n newest whole runs of l blocks, and their weight; 0 for fewer than two.
func spread(blocks []gainSum, l int) (square, weight float64, n int) {
	n = len(blocks) / l
	if n < 2 {
		return 0, 0, 0
	}
	blocks = blocks[len(blocks)-n*l:]
	all := total(blocks)
	if all.w <= 0 {
		return 0, 0, 0
	}
	for i := 0; i < len(blocks); i += l {
		run := total(blocks[i : i+l])
		d := run.wx - run.w*all.wx/all.w
		square += d * d
	}
	return square * float64(n) / float64(n-1), all.w, n
}

func total(blocks []gainSum) (s gainSum) {
	for _, b := range blocks {
		s.wx += b.wx
		s.w += b.w
	}
	return s
}
