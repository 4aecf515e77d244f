package recipe

import (
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestFingerprintHasTheScaling: a checkpoint's parameters are for features as they were scaled. A fresh head has the
// same parameters in all coordinates, and the rows are the same, so these do not tell.
func TestFingerprintHasTheScaling(t *testing.T) {
	rows := &data.Set{D: 2, K: 2, X: []float32{100, 2, 300, 4}, Y: []int32{0, 1}}
	seen := map[uint64]int{}
	for i, c := range []*scaling{nil, scalingOf(rows, rows), {mean: []float64{0, 3}, sd: []float64{1, 1}}} {
		tr := &Training{in: Input{Train: rows, Valid: rows}, scaling: c,
			problem: backend.Problem{Head: head.FreshLinear(2, 2, 1)}}
		of, err := tr.fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if j, again := seen[of]; again {
			t.Errorf("scalings %d and %d have the same fingerprint", j, i)
		}
		seen[of] = i
	}
}
