package acc

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// TestBothRows: rows that are added as both leave what they leave as predictions and as labelled rows, whatever comes
// between them and whenever the set is asked.
func TestBothRows(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		k := []int{2, 10, 100}[rng.IntN(3)]
		in := randBlock(rng, k, 300, rng.IntN(2) == 0, rng.IntN(3) == 0)
		block := NewBlock(k)
		rows := in.load(t, block)
		both, each := must(New(Config{K: k})), must(New(Config{K: k}))
		both.CountClasses(seed%2 == 0)
		each.CountClasses(seed%2 == 0)
		kinds := 1 + rng.IntN(3) // of additions, in some sets only both
		for len(rows) > 0 {
			n := min(len(rows), rng.IntN(40))
			some := rows[:n]
			rows = rows[n:]
			var err error
			switch rng.IntN(kinds) {
			case 0:
				err = errors.Join(both.BothRows(block, some), each.PredictRows(block, some),
					each.LabelRows(block, some))
			case 1:
				err = errors.Join(both.PredictRows(block, some), each.PredictRows(block, some))
			case 2:
				err = errors.Join(both.LabelRows(block, some), each.LabelRows(block, some))
			}
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 && !bytes.Equal(encode(t, both), encode(t, each)) {
				t.Fatalf("seed %d: other bytes", seed)
			}
			switch rng.IntN(40) {
			case 0:
				both = both.Clone()
			case 1:
				if err := errors.Join(both.Merge(both.Clone()), each.Merge(each.Clone())); err != nil {
					t.Fatal(err)
				}
			case 2:
				n, conf := both.SeenRows()
				if m, want := each.SeenRows(); n != m || n > 0 && conf != want {
					t.Fatalf("seed %d: %d predictions of confidence %v, want %d of %v", seed, n, conf, m, want)
				}
			case 3:
				both.Reset()
				each.Reset()
			}
		}
		if !bytes.Equal(encode(t, both), encode(t, each)) || !bytes.Equal(encode(t, both.Clone()), encode(t, each)) {
			t.Fatalf("seed %d: other bytes", seed)
		}
	}
}
