package alarm

import (
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestUnrelated: labels of other rows are told, and no others of a sure model.
func TestUnrelated(t *testing.T) {
	const k = 5
	for _, c := range []struct {
		name    string
		classes int // that are predicted
		label   func(r *rand.Rand, top int) int
		told    bool
	}{
		{"of other rows", k, func(r *rand.Rand, _ int) int { return r.IntN(k) }, true},
		{"classes in another order", k, func(_ *rand.Rand, top int) int { return (top + 1) % k }, true},
		{"half", k, func(r *rand.Rand, top int) int { return [...]int{top, r.IntN(k)}[r.IntN(2)] }, false},
		{"right", k, func(_ *rand.Rand, top int) int { return top }, false},
		{"nearly all of one class", 1, func(r *rand.Rand, _ int) int { return r.IntN(100) / 98 }, false},
	} {
		r, key := rand.New(rand.NewPCG(1, 9)), &stage.Key{Version: &stage.Version{}, K: k}
		for i := range int64(600) {
			row := acc.SampleRow{TS: i, LabelTS: i, W: 1, Z: make([]float32, k)}
			top := r.IntN(c.classes)
			row.Z[top], row.Y = 5, int32(c.label(r, top))
			key.Sample = append(key.Sample, row)
		}
		if text := unrelated(key, 100); (text != "") != c.told {
			t.Errorf("%s: %q", c.name, text)
		}
		if text := unrelated(key, 500); text != "" {
			t.Errorf("%s: 100 rows say %q", c.name, text)
		}
	}
}
