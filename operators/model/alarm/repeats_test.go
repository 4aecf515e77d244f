package alarm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestRepeated: rows that come again with their label are told; equal scores of different inputs are not, whether the
// model is right about them or not.
func TestRepeated(t *testing.T) {
	t.Parallel()
	scores := func(p float64) []float32 { return []float32{0, float32(math.Log(p / (1 - p)))} }
	hit := func(r *rand.Rand, p float64) int32 {
		if r.Float64() < p {
			return 1
		}
		return 0
	}
	for _, c := range []struct {
		name string
		rows func(r *rand.Rand) []acc.SampleRow // of one request
		told bool
	}{
		{"five of each", func(r *rand.Rand) (rows []acc.SampleRow) {
			p := .3 + .6*r.Float64()
			y := hit(r, p)
			for range 5 {
				rows = append(rows, acc.SampleRow{Z: scores(p), Y: y})
			}
			return rows
		}, true},
		{"five of each, in float32", func(r *rand.Rand) (rows []acc.SampleRow) {
			p := .3 + .6*r.Float64()
			y := hit(r, p)
			for range 5 {
				z := scores(p)
				z[1] += 1e-6 * float32(r.NormFloat64())
				rows = append(rows, acc.SampleRow{Z: z, Y: y})
			}
			return rows
		}, true},
		{"five of each, in float16", func(r *rand.Rand) (rows []acc.SampleRow) {
			z, right := []float64{0, r.NormFloat64(), 2 + r.NormFloat64()}, r.Float64() < .8
			for range 5 {
				row := acc.SampleRow{Y: 2}
				for _, x := range z {
					row.Z = append(row.Z, float32(x*(1+3e-4*r.NormFloat64())))
				}
				if !right {
					row.Y = 0
				}
				rows = append(rows, row)
			}
			return rows
		}, true},
		{"a quarter twice", func(r *rand.Rand) (rows []acc.SampleRow) {
			p := .3 + .6*r.Float64()
			row := acc.SampleRow{Z: scores(p), Y: hit(r, p)}
			if r.IntN(4) > 0 {
				return []acc.SampleRow{row}
			}
			return []acc.SampleRow{row, row}
		}, true},
		{"a twentieth twice", func(r *rand.Rand) (rows []acc.SampleRow) {
			p := .3 + .6*r.Float64()
			row := acc.SampleRow{Z: scores(p), Y: hit(r, p)}
			if r.IntN(20) > 0 {
				return []acc.SampleRow{row}
			}
			return []acc.SampleRow{row, row}
		}, false},
		{"each once", func(r *rand.Rand) []acc.SampleRow {
			p := .3 + .6*r.Float64()
			return []acc.SampleRow{{Z: scores(p), Y: hit(r, p)}}
		}, false},
		{"two decimals", func(r *rand.Rand) []acc.SampleRow {
			p := math.Round(30+60*r.Float64()) / 100
			return []acc.SampleRow{{Z: scores(p), Y: hit(r, p)}}
		}, false},
		{"seven leaves, sure where unsure", func(r *rand.Rand) []acc.SampleRow {
			p := .3 + .1*float64(r.IntN(7))
			return []acc.SampleRow{{Z: scores(p), Y: hit(r, .97)}}
		}, false},
		{"seven leaves, wrong where sure", func(r *rand.Rand) []acc.SampleRow {
			p := .3 + .1*float64(r.IntN(7))
			return []acc.SampleRow{{Z: scores(p), Y: hit(r, 1-p)}}
		}, false},
		{"all alike", func(r *rand.Rand) []acc.SampleRow {
			return []acc.SampleRow{{Z: scores(.8), Y: hit(r, .8)}}
		}, false},
	} {
		for seed := range uint64(20) {
			r, key := rand.New(rand.NewPCG(seed, 3)), &stage.Key{Version: &stage.Version{}}
			for len(key.Sample) < 1500 {
				key.Sample = append(key.Sample, c.rows(r)...)
			}
			key.K = len(key.Sample[0].Z)
			for i := range key.Sample {
				key.Sample[i].TS, key.Sample[i].W = int64(i), 1
			}
			if text := repeated(key, 0); (text != "") != c.told {
				t.Errorf("%s, seed %d: %q", c.name, seed, text)
			}
			if text := repeated(key, math.MaxInt64); text != "" {
				t.Errorf("%s, seed %d: no rows say %q", c.name, seed, text)
			}
		}
	}
}
