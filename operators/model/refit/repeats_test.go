package refit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
)

// TestRepeats: rows that repeat others, label and all, are no evidence of their own: of a calibrated stream nothing is
// published, of one that is sure too soon something is.
func TestRepeats(t *testing.T) {
	const panes, perPane, repeats = 120, 100, 10
	for _, c := range []struct {
		name string
		sure float64 // what the true logits are multiplied by
		want bool
	}{
		{"calibrated", 1, false},
		{"sure too soon", 2.5, true},
	} {
		for seed := range uint64(6) {
			f, rng := newFixture(t, testConfig(), 2), rand.New(rand.NewPCG(seed, 7))
			var row acc.SampleRow
			for at := range int64(panes) {
				var rows []acc.SampleRow
				for i := range perPane {
					if i%repeats == 0 {
						z := 3 * rng.NormFloat64()
						row = acc.SampleRow{W: 1, Z: []float32{0, float32(c.sure * z)}}
						if rng.Float64() < 1/(1+math.Exp(-z)) {
							row.Y = 1
						}
					}
					binary.LittleEndian.PutUint64(row.ID[:], uint64(at*perPane)+uint64(i))
					row.TS = at*paneLength + int64(i)
					row.LabelTS = row.TS
					rows = append(rows, row)
				}
				f.key.Keep(rows, sampleRows)
				f.pane(at, rows)
			}
			if got := f.version.Newest() != nil; got != c.want {
				t.Errorf("%s, seed %d: published %v, want %v", c.name, seed, got, c.want)
			}
		}
	}
}
