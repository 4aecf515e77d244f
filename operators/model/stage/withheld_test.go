package stage_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestWithheld: labels of a class are missed where the scores expect some, hardly any row since then has one, and there
// are predictions without a label that could have it.
func TestWithheld(t *testing.T) {
	for _, c := range []struct {
		name        string
		rows        int
		p           float64 // of class 1 of two
		positives   int     // of the first rows
		since       int64
		predictions int64
		want        string
	}{
		{"late positives", 300, .09, 0, 0, 330, "0 of 300 labels are of class 1, where the scores expect 27"},
		{"only some rows are labelled", 300, .09, 0, 0, 4000, "0 of 300 labels are of class 1"},
		{"one is there", 300, .09, 1, 0, 4000, "1 of 300 labels are of class 1"},
		{"two are there", 300, .09, 2, 0, 4000, ""},
		{"two are there, but not since", 300, .09, 2, 6, 4000, "0 of 294 labels are of class 1"},
		{"all rows have a label", 300, .09, 0, 0, 300, ""},
		{"too few have none", 300, .09, 0, 0, 320, ""},
		{"by chance", 80, .09, 0, 0, 4000, ""},
		{"no rows", 0, .09, 0, 0, 4000, ""},
		{"the newest", 5000, .09, 0, 0, 7000, "0 of 2000 labels are of class 1, where the scores expect 180"},
	} {
		k := &stage.Key{K: 2, Covered: func(from, to int64) (stage.Coverage, error) {
			return stage.Coverage{Predictions: c.predictions, Labelled: min(int64(c.rows), to-from+1)}, nil
		}}
		for i := range c.rows {
			y := int32(0)
			if i < c.positives {
				y = 1
			}
			z := float32(math.Log(c.p / (1 - c.p)))
			k.Sample = append(k.Sample, acc.SampleRow{TS: int64(i), LabelTS: int64(i), Y: y, W: 1, Z: []float32{0, z}})
		}
		got, err := stage.Withheld(k, c.since)
		if err != nil || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// TestThinned: a part of the labels of a class is missed, by the scores and by the predictions alike; not if the class
// comes less often, nor if rows are labelled by what the model says of them.
func TestThinned(t *testing.T) {
	const k, n = 3, 4000
	for _, c := range []struct {
		name  string
		prior float64 // of class 0; the scores take it for a third
		label func(y, says int, confidence float64) float64
		want  bool
	}{
		{"nine of ten", 1. / 3, func(y, _ int, _ float64) float64 { return pick(y == 0, .1, 1) }, true},
		{"seven of ten", 1. / 3, func(y, _ int, _ float64) float64 { return pick(y == 0, .3, 1) }, true},
		{"and half of others", 1. / 3, func(y, _ int, _ float64) float64 { return pick(y == 0, .05, .5) }, true},
		{"of what is rarer, too", .15, func(y, _ int, _ float64) float64 { return pick(y == 0, .1, .9) }, true},
		{"all labels", 1. / 3, func(int, int, float64) float64 { return 1 }, false},
		{"half of all", 1. / 3, func(int, int, float64) float64 { return .5 }, false},
		{"rarer", .1, func(int, int, float64) float64 { return .5 }, false},
		{"rarer, by what is said", .1, func(_, says int, _ float64) float64 { return pick(says == 0, .2, 1) }, false},
		{"by what is said", 1. / 3, func(_, says int, _ float64) float64 { return pick(says == 0, .2, 1) }, false},
		{"unsure rows", 1. / 3, func(_, _ int, conf float64) float64 { return pick(conf < .8, .9, .1) }, false},
		{"rarer, sure rows", .1, func(_, _ int, conf float64) float64 { return pick(conf < .8, .1, .9) }, false},
	} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 1))
			said, err := acc.NewClassCounts(k)
			if err != nil {
				t.Fatal(err)
			}
			key := &stage.Key{K: k}
			for i := range n {
				z, y := make([]float32, k), 1+rng.IntN(k-1)
				if rng.Float64() < c.prior {
					y = 0
				}
				for j := range z {
					x := rng.NormFloat64()
					if j == y {
						x += 1.5
					}
					z[j] = float32(1.5 * x)
				}
				says, conf := confidence(z)
				if err := said.Predict(says, conf, 1); err != nil {
					t.Fatal(err)
				}
				if rng.Float64() < c.label(y, says, conf) {
					row := acc.SampleRow{TS: int64(i), LabelTS: int64(i), Y: int32(y), W: 1, Z: z}
					key.Sample = append(key.Sample, row)
				}
			}
			key.Sample = key.Sample[max(0, len(key.Sample)-2000):]
			key.Covered = func(int64, int64) (stage.Coverage, error) {
				return stage.Coverage{Predictions: n, Labelled: int64(len(key.Sample)), Said: said}, nil
			}
			got, err := stage.Withheld(key, math.MinInt64)
			if err != nil || c.want != strings.Contains(got, "labels are of class 0, where ") {
				t.Errorf("%s, seed %d: %q, %v; want %v", c.name, seed, got, err, c.want)
			}
		}
	}
}

// TestThinnedWhileLabelsCome: a class that comes less often since less than the lag of labels is not missing.
func TestThinnedWhileLabelsCome(t *testing.T) {
	const k, n, lag = 3, 3000, 1500
	for seed := range uint64(10) {
		rng, key := rand.New(rand.NewPCG(seed, 1)), &stage.Key{K: k}
		predictions := make([]acc.SampleRow, n)
		for i := range predictions {
			z, y := make([]float32, k), 1+rng.IntN(k-1)
			if rng.Float64() < pick(i < n/2, 1./3, .03) {
				y = 0
			}
			for j := range z {
				z[j] = float32(1.5 * (rng.NormFloat64() + 1.5*pick(j == y, 1, 0)))
			}
			predictions[i] = acc.SampleRow{TS: int64(i), LabelTS: int64(i) + rng.Int64N(lag), Y: int32(y), W: 1, Z: z}
			if rng.Float64() < .9 && predictions[i].LabelTS <= n {
				key.Sample = append(key.Sample, predictions[i])
			}
		}
		slices.SortStableFunc(key.Sample, func(a, b acc.SampleRow) int { return cmp.Compare(a.LabelTS, b.LabelTS) })
		key.Covered = func(from, to int64) (c stage.Coverage, err error) {
			if c.Said, err = acc.NewClassCounts(k); err != nil {
				return c, err
			}
			for _, row := range predictions[from : to+1] {
				says, conf := confidence(row.Z)
				if err := c.Said.Predict(says, conf, 1); err != nil {
					return c, err
				}
				c.Predictions++
			}
			for _, row := range key.Sample {
				if row.TS >= from && row.TS <= to {
					c.Labelled++
				}
			}
			return c, nil
		}
		if got, err := stage.Withheld(key, math.MinInt64); err != nil || got != "" {
			t.Errorf("seed %d: %q, %v", seed, got, err)
		}
	}
}

func pick(yes bool, a, b float64) float64 {
	if yes {
		return a
	}
	return b
}

// confidence is the predicted class and its softmax.
func confidence(z []float32) (says int, conf float64) {
	var sum float64
	for j, x := range z {
		if x > z[says] {
			says = j
		}
		sum += math.Exp(float64(x))
	}
	return says, math.Exp(float64(z[says])) / sum
}
