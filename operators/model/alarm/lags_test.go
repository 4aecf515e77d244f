package alarm

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestSoonerWhenWrong: lags that depend on the outcome are told, and no others: not those of a model that becomes
// worse, whose newest rows have quick labels only, and not those that depend on the confidence.
func TestSoonerWhenWrong(t *testing.T) {
	const until = 6000 * second
	for _, c := range []struct {
		name  string
		wrong func(ts int64, conf float64) float64 // chance
		lag   func(r *rand.Rand, hit bool, conf float64) float64
		told  bool
	}{
		{"any lag", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, _ bool, _ float64) float64 { return 600 * r.Float64() }, false},
		{"a fault", func(ts int64, conf float64) float64 {
			if ts > until-400*second {
				return .6
			}
			return 1 - conf
		}, func(r *rand.Rand, _ bool, _ float64) float64 { return 600 * r.Float64() }, false},
		{"sure rows late", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, _ bool, conf float64) float64 { return 600 * conf * r.Float64() }, false},
		{"wrong first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(_ *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 600
				}
				return 5
			}, true},
		{"wrong rather first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 600 * r.Float64()
				}
				return 120 * r.Float64()
			}, true},
		{"right first", func(_ int64, conf float64) float64 { return 1 - conf },
			func(r *rand.Rand, hit bool, _ float64) float64 {
				if hit {
					return 120 * r.Float64()
				}
				return 600 * r.Float64()
			}, false},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			k := &stage.Key{Version: &stage.Version{}, K: 2}
			for ts := int64(0); ts < until; ts += second {
				z := float32(3 * r.Float64())
				s, err := stage.NewScorer(2).Row(nil, &acc.SampleRow{Z: []float32{z, 0}}, 10)
				if err != nil {
					t.Fatal(err)
				}
				row := acc.SampleRow{TS: ts, W: 1, Z: []float32{z, 0}}
				if r.Float64() < c.wrong(ts, s.Confidence) {
					row.Y = 1
				}
				row.LabelTS = ts + int64(c.lag(r, row.Y == 0, s.Confidence)*float64(second))
				if row.LabelTS < until && row.LabelTS > until-3000*second { // the latest labels
					k.Sample = append(k.Sample, row)
				}
			}
			text := soonerWhenWrong(k)
			if (text != "") != c.told || c.name == "wrong first" && !strings.Contains(text, "(median 5s, 10m0s)") {
				t.Errorf("%s, seed %d: %q", c.name, seed, text)
			}
		}
	}
}
