package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
)

// levels are the confidences of the simulated rows; each has perLevel rows, whose hits are binomial.
var levels = []float64{.62, .68, .74, .8, .86, .92}

const perLevel = 100

// drawnHits draws the hits of each level: of calibrated rows, less gap.
func drawnHits(rng *rand.Rand, gap float64) []int {
	hits := make([]int, len(levels))
	for i, c := range levels {
		for range perLevel {
			if rng.Float64() < c-gap {
				hits[i]++
			}
		}
	}
	return hits
}

// coverage counts what the 95 % intervals of many draws hold.
type coverage struct {
	runs, covered, above int
	null, observed       float64 // means
	width                float64
}

// simulate draws rows again and again, and asks for the interval of a metric and its value each time.
func simulate(gap float64, runs int, interval func(hits []int) (metric.Interval, float64)) coverage {
	rng := rand.New(rand.NewPCG(31, 7))
	c := coverage{runs: runs}
	for range runs {
		iv, value := interval(drawnHits(rng, gap))
		if iv.Lo <= gap && gap <= iv.Hi {
			c.covered++
		}
		if value > iv.NullHi {
			c.above++
		}
		c.null, c.observed = c.null+iv.Null/float64(runs), c.observed+value/float64(runs)
		c.width += (iv.Hi - iv.Lo) / float64(runs)
	}
	return c
}

// check holds coverage against 95 %, of rows whose metric is far from 0, where it has hardly any bias.
func (c coverage) check(t *testing.T, width float64) {
	t.Helper()
	// Draws are few: four binomial deviations at 200 are 6 %. Percentiles of few resamples are a little narrow.
	if rate := float64(c.covered) / float64(c.runs); rate < .88 || c.covered == c.runs {
		t.Errorf("%d of %d intervals hold the truth, want about 95 %%", c.covered, c.runs)
	}
	if math.Abs(c.width/width-1) > .1 {
		t.Errorf("intervals are %.4f wide, want about %.4f", c.width, width)
	}
	if c.above < c.runs*9/10 {
		t.Errorf("%d of %d are above what calibrated models show, want nearly all", c.above, c.runs)
	}
}

// checkNull holds the null against calibrated rows: its mean is theirs, and 5 % of them are above its quantile.
func (c coverage) checkNull(t *testing.T) {
	t.Helper()
	if math.Abs(c.null/c.observed-1) > .1 {
		t.Errorf("the null's mean is %.4f, that of calibrated rows %.4f", c.null, c.observed)
	}
	if rate := float64(c.above) / float64(c.runs); rate < .005 || rate > .12 {
		t.Errorf("%d of %d calibrated draws are above the quantile, want about 5 %%", c.above, c.runs)
	}
}

// binomialWidth is the width of a 95 % interval of the mean gap, whose only noise is that of the hits.
func binomialWidth(gap float64) float64 {
	var variance float64
	for _, c := range levels {
		variance += (c - gap) * (1 - c + gap) / float64(len(levels))
	}
	return 2 * 1.96 * math.Sqrt(variance/float64(perLevel*len(levels)))
}

// cellInterval is the interval of the Kolmogorov-Smirnov error of cells. Where each cell is overconfident that error is
// the mean gap, so the interval is that of a binomial.
func cellInterval(t *testing.T, resamples int) func(hits []int) (metric.Interval, float64) {
	return func(hits []int) (metric.Interval, float64) {
		var cells []metric.Bin
		for i, c := range levels {
			cells = append(cells, metric.Bin{N: perLevel, W: perLevel, W2: perLevel, SumC: c * perLevel,
				SumA: float64(hits[i])})
		}
		iv, err := metric.UncertaintyCells(cells, "ks", metric.Options{Resamples: resamples, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		return iv, metric.KSCells(cells)
	}
}

// TestCellIntervalsCover: intervals of resampled cells hold the truth of a simulated binomial about as often as they
// say, and are as wide as the binomial's.
func TestCellIntervalsCover(t *testing.T) {
	simulate(.2, 300, cellInterval(t, 200)).check(t, binomialWidth(.2))
	simulate(0, 300, cellInterval(t, 200)).checkNull(t)
}

// classInterval is the interval of the class-wise error of rows of two classes: each has the gap of the other.
func classInterval(t *testing.T, resamples int) func(hits []int) (metric.Interval, float64) {
	return func(hits []int) (metric.Interval, float64) {
		rows := metric.Rows{K: 2, Probs: true}
		for i, c := range levels {
			for j := range perLevel {
				label := int32(0)
				if j >= hits[i] {
					label = 1
				}
				rows.F64, rows.Labels = append(rows.F64, c, 1-c), append(rows.Labels, label)
			}
		}
		report := evaluate(t, rows, metric.Options{Uncertainty: true, Resamples: resamples, Seed: 5})
		for _, iv := range report.Intervals {
			if iv.Key == "cwece" {
				return iv.Interval, report.CWECE
			}
		}
		t.Fatal("no interval of cwece")
		return metric.Interval{}, 0
	}
}

// TestClassWiseIntervalsCover: the same for labels redrawn row by row.
func TestClassWiseIntervalsCover(t *testing.T) {
	testsize.Slow(t)
	simulate(.2, 100, classInterval(t, 100)).check(t, binomialWidth(.2))
	simulate(0, 100, classInterval(t, 100)).checkNull(t)
}

// TestIntervalsAreSeeded: one seed gives one interval, another seed another.
func TestIntervalsAreSeeded(t *testing.T) {
	hits := drawnHits(rand.New(rand.NewPCG(1, 1)), .1)
	for name, interval := range map[string]func([]int) (metric.Interval, float64){"cells": cellInterval(t, 50),
		"class-wise": classInterval(t, 100)} {
		first, _ := interval(hits)
		if again, _ := interval(hits); again != first {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
		hits[0]--
		if other, _ := interval(hits); other == first {
			t.Errorf("%s: other rows have the same interval %+v", name, first)
		}
		hits[0]++
	}
}
