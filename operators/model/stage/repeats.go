package stage

import (
	"cmp"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
)

const (
	// repeatsOf is of how many of the newest rows Repeats says something, at most.
	repeatsOf = 2000
	// repeatedShare is the share of rows that others repeat from which on this matters.
	repeatedShare = .1
	// Of fewer rows than repeatsFew, of which a first answer may be, it is enough for RepeatsLikely that labels of
	// repeatsPairs agree.
	repeatsFew   = 500
	repeatsPairs = 10
)

// Standard scores of what is told, and of what keeps rows from being evidence.
const (
	RepeatsSure   = 5
	RepeatsLikely = 1.5
)

// Repeats returns of how many of the newest rows since an event time the scores are exactly those of another one, where
// many of the rows are repeats: requests that were sent again under another id, or inputs that are scored every day,
// with one outcome for all; else 0. Each counts as evidence of its own. Scores that are equal do not show it, for those
// of a tree or with two decimals often are; but then labels agree no more often than those of neighbours, the rows of
// the same predicted class whose confidence is next. With n rows in g groups of equal scores, a of the pairs of the
// first two rows of a group with labels that differ, and b of those of its first row and the first of the next group:
//
//	n - g ≥ .1 n,  a ≤ b/2,  b - a > z √b
func Repeats(k *Key, since int64, z float64) (repeats, of int) {
	rows := make([]*acc.SampleRow, 0, min(len(k.Sample), repeatsOf))
	for i := len(k.Sample) - 1; i >= 0 && len(rows) < repeatsOf; i-- {
		if row := &k.Sample[i]; row.TS >= since {
			rows = append(rows, row)
		}
	}
	known, same := make(map[uint64]*acc.SampleRow, len(rows)), 0
	for _, row := range rows { // costs less than the order below, which most streams do not need
		if seen(known, row) {
			same++
		}
	}
	if float64(same) < repeatedShare*float64(len(rows)) || !agree(k.K, rows, z) {
		return 0, len(rows)
	}
	return same, len(rows)
}

// seen reports whether a known row has the scores of another one, which it adds.
func seen(known map[uint64]*acc.SampleRow, row *acc.SampleRow) bool {
	h := uint64(len(row.Z))
	for _, z := range row.Z[:min(len(row.Z), 8)] { // equal ones are compared as a whole
		h = (h ^ uint64(math.Float32bits(z))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	if was := known[h]; was != nil {
		return slices.Equal(was.Z, row.Z)
	}
	known[h] = row
	return false
}

// agree is the second and third condition of Repeats.
func agree(classes int, rows []*acc.SampleRow, z float64) bool {
	type scored struct {
		class int
		conf  float64
		z     []float32
		y     int32
	}
	sc, order := NewScorer(classes), make([]scored, 0, len(rows))
	for _, row := range rows {
		s, err := sc.Row(nil, row, math.Inf(1))
		if err != nil {
			return false
		}
		order = append(order, scored{s.Class, s.Confidence, row.Z, row.Y})
	}
	slices.SortStableFunc(order, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.conf, b.conf), slices.Compare(a.z, b.z))
	})
	pairs, differ, neighbours := 0, 0.0, 0.0
	for i, j := 0, 0; i < len(order); i = j { // rows with equal scores are from i to j
		for j = i + 1; j < len(order) && slices.Equal(order[j].z, order[i].z); j++ {
		}
		if j == i+1 || j == len(order) || order[j].class != order[i].class {
			continue
		}
		if pairs++; order[i+1].y != order[i].y {
			differ++
		}
		if order[j].y != order[i].y {
			neighbours++
		}
	}
	if z == RepeatsLikely && len(rows) < repeatsFew && pairs >= repeatsPairs && differ == 0 {
		return true
	}
	return differ <= neighbours/2 && neighbours-differ > z*math.Sqrt(neighbours)
}

// Once returns the sampled rows whose scores no earlier one has, and the ids of the others.
func Once(sample []acc.SampleRow) (rows []acc.SampleRow, others map[[16]byte]bool) {
	known := make(map[uint64]*acc.SampleRow, len(sample))
	others = make(map[[16]byte]bool)
	for i := range sample {
		if row := &sample[i]; seen(known, row) {
			others[row.ID] = true
		} else {
			rows = append(rows, *row)
		}
	}
	return rows, others
}
