package stage_test

import (
	"math"
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
		k := &stage.Key{K: 2, Covered: func(from, to int64) (int64, int64, error) {
			labelled := min(int64(c.rows), to-from+1)
			return c.predictions, labelled, nil
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
