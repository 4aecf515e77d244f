package stage_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestSoonerWhenWrong: lags that depend on the outcome are told, and no others: not those of a model that becomes
// worse, whose newest rows have quick labels only, and not those that depend on the confidence. Rows with labels are
// a biased sample then until labels have come for long enough.
func TestSoonerWhenWrong(t *testing.T) {
	const until = 6000 * batchtest.Second
	for _, c := range []struct {
		name  string
		wrong func(ts int64, conf float64) float64 // chance
		lag   func(r *rand.Rand, hit bool, conf float64) float64
		told  bool
		yet   bool // said while labels have not come for long enough
	}{
		{"any lag", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, _ bool, _ float64) float64 { return 600 * r.Float64() }, false, false},
		{"a fault", func(ts int64, conf float64) float64 {
			if ts > until-400*batchtest.Second {
				return .6
			}
			return 1 - conf
		}, func(r *rand.Rand, _ bool, _ float64) float64 { return 600 * r.Float64() }, false, false},
		{"sure rows late", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, _ bool, conf float64) float64 { return 600 * conf * r.Float64() }, false, false},
		{"wrong first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(_ *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 600
				}
				return 5
			}, true, true},
		{"wrong rather first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 600 * r.Float64()
				}
				return 120 * r.Float64()
			}, true, true},
		{"right first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 120 * r.Float64()
				}
				return 600 * r.Float64()
			}, false, true},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			k := &stage.Key{Version: &stage.Version{}, K: 2}
			for ts := int64(0); ts < until; ts += batchtest.Second {
				z := float32(3 * r.Float64())
				s, err := stage.NewScorer(2).Row(nil, &acc.SampleRow{Z: []float32{z, 0}}, 10)
				if err != nil {
					t.Fatal(err)
				}
				row := acc.SampleRow{TS: ts, W: 1, Z: []float32{z, 0}}
				if r.Float64() < c.wrong(ts, s.Confidence) {
					row.Y = 1
				}
				row.LabelTS = ts + int64(c.lag(r, row.Y == 0, s.Confidence)*float64(batchtest.Second))
				if row.LabelTS < until && row.LabelTS > until-3000*batchtest.Second { // the latest labels
					k.Sample = append(k.Sample, row)
				}
			}
			text := stage.SoonerWhenWrong(k)
			if (text != "") != c.told || c.name == "wrong first" && !strings.Contains(text, "(median 5s, 10m0s)") {
				t.Errorf("%s, seed %d: %q", c.name, seed, text)
			}
			for began, want := range map[int64]bool{until - 900*batchtest.Second: c.yet, 0: false} {
				k.Began = began
				if why, err := stage.Biased(k, 0, stage.SettledInOrder); err != nil || (why != "") != want {
					t.Errorf("%s, seed %d, labels since %d: %q, %v", c.name, seed, began, why, err)
				}
			}
		}
	}
}

// TestFirstLabels: a first answer may be of 200 labels. If nearly all are of wrong rows, as those of right rows take 20
// minutes, they are told to be no fair sample in most streams of 60 seconds.
func TestFirstLabels(t *testing.T) {
	for _, late := range []bool{false, true} {
		told := 0
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 3))
			k := &stage.Key{Version: &stage.Version{}, K: 2}
			for ts := 0.0; ts < 60; ts += .1 {
				z := float32(3 * r.Float64())
				row := acc.SampleRow{TS: int64(ts * 1e9), W: 1, Z: []float32{z, 0}}
				if r.Float64() < 1/(1+math.Exp(float64(z))) {
					row.Y = 1
				}
				lag := 1200 * r.ExpFloat64()
				if late && row.Y == 1 {
					lag /= 1200
				}
				if row.LabelTS = row.TS + int64(lag*1e9); ts+lag < 60 {
					k.Sample = append(k.Sample, row)
				}
			}
			why, err := stage.Biased(k, 0, stage.SettledSince)
			if err != nil {
				t.Fatal(err)
			}
			if why != "" {
				told++
			}
		}
		if late && told < 75 || !late && told > 1 {
			t.Errorf("wrong rows first %v: %d of 100 streams told", late, told)
		}
	}
}
