package calibrator

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/plumbline/plumbline/calib/kernel"
)

// MetaCalSettings are the settings of FitMetaCal. The zero value is the default.
type MetaCalSettings struct {
	// Constraint is MiscoverageRate where it is empty.
	Constraint Constraint
	// Target is the share of right rows that may be given up, 0 for the authors' 0.05, or the accuracy wanted of the
	// rows that are kept, 0 for 1 - (1 - accuracy)/2, half the error of the fitted rows. Otherwise in (0, 1).
	Target float64
	// Delta, in (0, 1), asks for a threshold that keeps to the target with probability 1 - Delta over the draw of the
	// fitted rows. 0 asks for it on average over that draw. It needs equal weights.
	Delta float64
	// RankEvery is m: one row in m sets the threshold, and the others fit the base; with 1 all rows do both. Row i of
	// those of positive weight is one where the fraction of 0.618…·i is below 1/m, an even choice that no period of
	// the rows' order meets. 0 is a tenth of the rows, but one in n/100 (at most half) below 1,000 rows.
	RankEvery int
	// Base fits the base calibrator on n×K logits; nil is FitTemperature.
	Base func(z []float64, k int, y []int32, w []float64) (Calibrator, error)
}

const (
	metaCalAlpha = 0.05
	// rankEvery is the share of rows that the authors' code sets aside, there a random tenth and 500 at most.
	rankEvery = 10
	// rankRows is the number of rows that set the threshold at least, as far as half of the rows are that many.
	rankRows = 100
	// coverageLevels is the number of thresholds tried under Delta, as many as the bins of the authors' code.
	coverageLevels = 20
)

func (m MetaCalSettings) withDefaults(n int) (MetaCalSettings, error) {
	if m.Constraint == "" {
		m.Constraint = MiscoverageRate
	}
	if m.Constraint != MiscoverageRate && m.Constraint != CoverageAccuracy {
		return m, fmt.Errorf("constraint: %q, allowed are %s, %s", m.Constraint, MiscoverageRate, CoverageAccuracy)
	}
	if m.Target != 0 && !(m.Target > 0 && m.Target < 1) {
		return m, fmt.Errorf("target: %g, allowed are 0 and values between 0 and 1", m.Target)
	}
	if !(m.Delta >= 0 && m.Delta < 1) {
		return m, fmt.Errorf("delta: %g, allowed are values from 0 below 1", m.Delta)
	}
	if m.RankEvery < 0 {
		return m, fmt.Errorf("rank every: %d, allowed are values from 0", m.RankEvery)
	}
	if m.RankEvery == 0 {
		m.RankEvery = max(2, min(rankEvery, n/rankRows))
	}
	if m.Constraint == MiscoverageRate && m.Target == 0 {
		m.Target = metaCalAlpha
	}
	return m, nil
}

// FitMetaCal sets the threshold from the ranking rows (see RankEvery), then fits the base calibrator on those of the
// other rows that are kept. With h_(1) ≤ … ≤ h_(m) the entropies of the m right ranking rows, MiscoverageRate takes
//
//	threshold = h_(⌈(m+1)(1-α)⌉), so E[P(given up | right)] ≤ α
//
// a split-conformal quantile (weighted: the least h with Σ_{h_i≤h} w_i ≥ (1-α)(Σ w + max w)); with Delta it is the
// least h_(j) with P(Beta(j, m-j+1) < 1-α) ≤ Delta. Where m is too small no row is given up, and the report says so.
// CoverageAccuracy takes the greatest h with
//
//	(E(h) + 1)/(N(h) + 1) ≤ 1 - target
//
// for the N(h) ranking rows up to h and the E(h) wrong ones among them (weighted: plus max w in place of 1): an
// estimate. With Delta it takes the largest of 20 coverages (ranks ⌈m j/20⌉) whose Clopper–Pearson bound of the
// error at Delta/20 is ≤ 1 - target, which holds for all of them at once. Where no threshold reaches a target that was
// set, that is an error; one that was not set is given up, and the report says so.
//
// The authors' code differs: it has no finite-sample correction; it draws the ranking rows at random, for the first
// constraint from the right rows only, which leaves the base too many wrong ones (here one index split serves both);
// it finds the second threshold by isotonic regression of mean entropy on mean accuracy in 20 bins; and it gives up
// rows at the threshold too.
// The threshold is 1 + 1e-12 times the entropy that sets it. Errors are those of
// FitTemperature.
func FitMetaCal[T kernel.Float](d Data[T], set MetaCalSettings, opts Options) (*MetaCal, Report, error) {
	s, err := newSample("metacal", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	set, err = set.withDefaults(s.n)
	if err != nil {
		return nil, Report{}, fmt.Errorf("fit metacal: %w", err)
	}
	rows := s.ranked(set.RankEvery)
	if first := rows[0].w; set.Delta > 0 && slices.ContainsFunc(rows, func(r rankedRow) bool { return r.w != first }) {
		return nil, Report{}, fmt.Errorf("fit metacal: delta: %g with unequal weights, allowed is 0", set.Delta)
	}
	c := &MetaCal{p: metaCalParams{Constraint: set.Constraint, Target: set.Target}}
	if set.Constraint == MiscoverageRate {
		c.p.Threshold = s.miscoverageThreshold(rows, set.Target, set.Delta)
	} else if c.p.Threshold, c.p.Target, err = s.accuracyThreshold(rows, set.Target, set.Delta); err != nil {
		return nil, Report{}, fmt.Errorf("fit metacal: %w", err)
	}
	if h, some := c.Threshold(); some && h > 0 {
		c.p.Threshold = h * (1 + besideRow)
	}
	if c.p.Base.Calibrator, err = s.fitBase(c.p.Threshold, set); err != nil {
		return nil, Report{}, fmt.Errorf("fit metacal: base: %w", err)
	}
	return finish(s, c, metaCalParameters)
}

// besideRow moves the threshold off the entropy of the row that set it, by far more than the roundings of another
// implementation and far less than to another row: else that row would be kept here and given up there.
const besideRow = 1e-12

// metaCalParameters are the threshold and the base's temperature.
const metaCalParameters = 2

// fitMetaCal is FitMetaCal for the registry.
func fitMetaCal[T kernel.Float](by Constraint) fitFunc[T] {
	return general(func(d Data[T], opts Options) (*MetaCal, Report, error) {
		set := opts.MetaCal
		if set.Constraint != "" || set.Target != 0 {
			return nil, Report{},
				fmt.Errorf("fit metacal: constraint %q and target %g in the options' MetaCal, allowed are none: the "+
					"method's name and accuracy or miscoverage say them", set.Constraint, set.Target)
		}
		set.Constraint, set.Target = by, opts.Miscoverage
		if by == CoverageAccuracy {
			set.Target = opts.Accuracy
		}
		return FitMetaCal(d, set, opts)
	})
}

// rankedRow is a row that sets the threshold.
type rankedRow struct {
	h, w  float64
	right bool
}

// ranks says that row i sets the threshold.
func ranks(i, m int) bool {
	return m == 1 || uint64(i)*goldenRatio < math.MaxUint64/uint64(m)
}

const goldenRatio = 0x9e3779b97f4a7c15 // 0.618… of 2⁶⁴

// ranked returns the rows that set the threshold, by rising entropy.
func (s *sample) ranked(m int) []rankedRow {
	var rows []rankedRow
	for i := range s.n {
		if !ranks(i, m) {
			continue
		}
		row := s.row(i)
		rows = append(rows, rankedRow{h: rowEntropy(row), w: s.w[i], right: argmax(row) == int(s.y[i])})
	}
	slices.SortFunc(rows, func(a, b rankedRow) int {
		switch {
		case a.h < b.h:
			return -1
		case a.h > b.h:
			return 1
		}
		return 0
	})
	return rows
}

// miscoverageThreshold is the split-conformal quantile of the entropies of the right rows.
func (s *sample) miscoverageThreshold(rows []rankedRow, alpha, delta float64) float64 {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r rankedRow) bool { return !r.right })
	total, heaviest := weights(rows)
	const rounding = 1e-12 // of (m+1)(1-α), which may be whole
	need := (1 - alpha) * (total + heaviest) * (1 - rounding)
	var sum float64
	for i, r := range rows {
		sum += r.w
		j, m := float64(i+1), float64(len(rows))
		if delta == 0 && sum >= need || delta > 0 && mathext.RegIncBeta(j, m-j+1, 1-alpha) <= delta {
			return r.h
		}
	}
	s.warn("%d right rows to set the threshold, too few for a miscoverage of %g: no row is given up", len(rows), alpha)
	return acceptAll
}

func weights(rows []rankedRow) (total, heaviest float64) {
	for _, r := range rows {
		total += r.w
		heaviest = max(heaviest, r.w)
	}
	return total, heaviest
}

// accuracyThreshold returns the greatest threshold that reaches the target, and the target.
func (s *sample) accuracyThreshold(rows []rankedRow, target, delta float64) (threshold, wanted float64, err error) {
	wanted = target
	if target == 0 {
		var hits float64
		for i, y := range s.y {
			if argmax(s.row(i)) == int(y) {
				hits += s.w[i]
			}
		}
		wanted = 1 - (1-min(1, hits/s.total))/2
		if wanted == 1 {
			return acceptAll, wanted, nil // no error to halve
		}
	}
	best, ok := -1.0, false
	if delta == 0 {
		best, ok = greatestKept(rows, 1-wanted)
	} else {
		best, ok = greatestProven(rows, 1-wanted, delta)
	}
	switch {
	case ok:
		return best, wanted, nil
	case target == 0:
		s.warn("no threshold reaches the accuracy %.4g: no row is given up", wanted)
		return acceptAll, wanted, nil
	}
	return 0, 0, fmt.Errorf("accuracy %g: no threshold reaches it on the %d rows that set it", target, len(rows))
}

// greatestKept is the greatest entropy up to which (E + w)/(N + w) ≤ risk, w the heaviest row's weight.
func greatestKept(rows []rankedRow, risk float64) (threshold float64, ok bool) {
	_, heaviest := weights(rows)
	var n, wrong float64
	for i, r := range rows {
		n += r.w
		if !r.right {
			wrong += r.w
		}
		last := i == len(rows)-1
		if !last && rows[i+1].h == r.h {
			continue
		}
		if wrong+heaviest <= risk*(n+heaviest) {
			threshold, ok = r.h, true
			if last {
				threshold = acceptAll
			}
		}
	}
	return threshold, ok
}

// greatestProven is the greatest of the coverage levels whose error is ≤ risk with probability 1 - delta for all
// levels at once. Given h_(j), the rows strictly below it are independent draws from below it.
func greatestProven(rows []rankedRow, risk, delta float64) (threshold float64, ok bool) {
	m := len(rows)
	for level := 1; level <= coverageLevels; level++ {
		below, at := m, acceptAll
		if level < coverageLevels {
			h := rows[(m*level+coverageLevels-1)/coverageLevels-1].h
			below = slices.IndexFunc(rows, func(r rankedRow) bool { return r.h >= h })
			at = math.Nextafter(h, math.Inf(-1))
		}
		wrong := 0
		for _, r := range rows[:below] {
			if !r.right {
				wrong++
			}
		}
		if wrong == below {
			continue
		}
		upper := mathext.InvRegIncBeta(float64(wrong+1), float64(below-wrong), 1-delta/coverageLevels)
		if upper <= risk {
			threshold, ok = at, true
		}
	}
	return threshold, ok
}

// fitBase fits the base on the kept rows that are not ranking rows.
func (s *sample) fitBase(threshold float64, set MetaCalSettings) (Calibrator, error) {
	z, y, w := s.kept(threshold, set.RankEvery)
	if len(y) == 0 {
		s.warn("no kept row is left for the base, it is fitted on all %d", s.n)
		z, y, w = s.z, s.y, s.w
	}
	if set.Base != nil {
		base, err := set.Base(z, s.k, y, w)
		if err != nil {
			return nil, err
		}
		return base, checkBase(base)
	}
	ts, r, err := FitTemperature(NewData(z, s.k, y, w), Options{})
	if err != nil {
		return nil, err
	}
	s.report.Iterations, s.report.OnBound, s.report.Flat = r.Iterations, r.OnBound, r.Flat
	if r.OnBound {
		s.warn("temperature %g, a bound", ts.T())
	}
	return ts, nil
}

// kept are the rows up to the threshold that did not set it; with m = 1, those that did too.
func (s *sample) kept(threshold float64, m int) (z []float64, y []int32, w []float64) {
	for i := range s.n {
		if row := s.row(i); (m == 1 || !ranks(i, m)) && rowEntropy(row) <= threshold {
			z, y, w = append(z, row...), append(y, s.y[i]), append(w, s.w[i])
		}
	}
	return z, y, w
}
