package alarm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"
)

const (
	// repeatsOf is of how many of the newest rows repeated says something, at most.
	repeatsOf = 2000
	// repeatedShare is the share of rows that others repeat from which on this matters.
	repeatedShare = .1
)

// repeated says that many of the rows since an event time are repeats: requests that were sent again under another id,
// or inputs that are scored every day, with one outcome for all; else "". Each counts as evidence of its own, so an
// alert may come without an error. Scores that are equal do not show it, for those of a tree or with two decimals often
// are; but then labels agree no more often than those of neighbours, the rows of the same predicted class whose
// confidence is next. With n rows in g groups of equal scores, a of the pairs of the first two rows of a group with
// labels that differ, and b of those of its first row and the first of the next group:
//
//	n - g ≥ .1 n,  a ≤ b/2,  b - a > 5 √b
func repeated(k *stage.Key, since int64) string {
	type scored struct {
		class int
		conf  float64
		z     []float32
		y     int32
	}
	var rows []scored
	sc := stage.NewScorer(k.K)
	for i := len(k.Sample) - 1; i >= 0 && len(rows) < repeatsOf; i-- {
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		s, err := sc.Row(nil, row, math.Inf(1))
		if err != nil {
			return ""
		}
		rows = append(rows, scored{s.Class, s.Confidence, row.Z, row.Y})
	}
	slices.SortStableFunc(rows, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.conf, b.conf), slices.Compare(a.z, b.z))
	})
	same, differ, neighbours := 0, 0.0, 0.0
	for i, j := 0, 0; i < len(rows); i = j { // rows with equal scores are from i to j
		for j = i + 1; j < len(rows) && slices.Equal(rows[j].z, rows[i].z); j++ {
			same++
		}
		if j == i+1 || j == len(rows) || rows[j].class != rows[i].class {
			continue
		}
		if rows[i+1].y != rows[i].y {
			differ++
		}
		if rows[j].y != rows[i].y {
			neighbours++
		}
	}
	if float64(same) < repeatedShare*float64(len(rows)) || differ > neighbours/2 ||
		neighbours-differ <= surprising*math.Sqrt(neighbours) {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the latest %d labelled predictions have exactly the scores of another one, and far "+
		"more often its label than chance explains: if requests are repeated under new ids, each counts as "+
		"evidence. Send a request once, or give each of its g repeats the weight 1/g",
		100*float64(same)/float64(len(rows)), len(rows))
}
