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
	// Of fewer rows than fewRepeats nothing is learnt where the labels of all of leastPairs agree: Repeats cannot yet
	// tell.
	fewRepeats = 1000
	leastPairs = 10
)

// ManyRepeats is the share of rows that others repeat from which on these are no evidence: of fewer, evidence is too
// large by less than a half.
const ManyRepeats = .3

// Standard scores of what is told of an alert, and of what keeps rows from being evidence.
const (
	RepeatsSure   = 5
	RepeatsLikely = 3
)

// Repeats returns of how many of the newest rows since an event time the scores are those of another one (nearness),
// where many of the rows are repeats: requests that were sent again under another id, or inputs that are scored every
// day, with one outcome for all; else 0. Each counts as evidence of its own. Equal scores do not show it, for those of
// a tree or with two decimals often are; but then labels agree no more often than those of neighbours, the rows of the
// same predicted class whose confidence is next. With n rows in g groups of equal scores, a of the pairs of the first
// two rows of a group with labels that differ, and b of those of its first row and the first of the next group:
//
//	n - g ≥ .1 n,  a ≤ b/2,  b - a > z √b
func Repeats(k *Key, since int64, z float64) (repeats, of int) {
	r := repetitionOf(k, since)
	if r.differ > r.neighbours/2 || r.neighbours-r.differ <= z*math.Sqrt(r.neighbours) {
		return 0, r.rows
	}
	return r.same, r.rows
}

// mayRepeat reports whether rows are too few for Repeats, and all of those that could be repeats agree.
func mayRepeat(k *Key) bool {
	if len(k.Sample) >= fewRepeats {
		return false
	}
	r := repetitionOf(k, math.MinInt64)
	return r.pairs >= leastPairs && r.differ == 0 && float64(r.same) >= ManyRepeats*float64(r.rows)
}

// repetition holds n, n - g, and the pairs with a and b of Repeats, 0 where n - g is too small to matter.
type repetition struct {
	rows, same, pairs  int
	differ, neighbours float64
}

func repetitionOf(k *Key, since int64) (r repetition) {
	type group struct {
		row    *acc.SampleRow
		second int32 // label of the next row; -1 = none
		RowScore
	}
	var known scores
	groups := make([]group, 0, repeatsOf)
	for i := len(k.Sample) - 1; i >= 0 && r.rows < repeatsOf; i-- {
		row := &k.Sample[i]
		if row.TS < since {
			continue
		}
		r.rows++
		if at, is := known.add(row); !is {
			groups = append(groups, group{row: row, second: -1})
		} else if r.same++; groups[at].second < 0 {
			groups[at].second = row.Y
		}
	}
	if r.same == 0 || float64(r.same) < repeatedShare*float64(r.rows) {
		return r
	}
	sc := NewScorer(k.K)
	for i := range groups {
		var err error
		if groups[i].RowScore, err = sc.Row(nil, groups[i].row, math.Inf(1)); err != nil {
			return r
		}
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Confidence, b.Confidence),
			slices.Compare(a.row.Z, b.row.Z))
	})
	for i, g := range groups[:len(groups)-1] {
		next := groups[i+1]
		if g.second < 0 || next.Class != g.Class {
			continue
		}
		if r.pairs++; g.second != g.row.Y {
			r.differ++
		}
		if next.row.Y != g.row.Y {
			r.neighbours++
		}
	}
	return r
}

// Once returns the sampled rows whose scores no earlier one has, and the ids of the others.
func Once(sample []acc.SampleRow) (rows []acc.SampleRow, others map[[16]byte]bool) {
	var known scores
	others = make(map[[16]byte]bool)
	for i := range sample {
		if _, is := known.add(&sample[i]); is {
			others[sample[i].ID] = true
		} else {
			rows = append(rows, sample[i])
		}
	}
	return rows, others
}

// nearness is how far apart scores may be, as a share of their size (at least 1), and be those of one input: float16
// and bfloat16 round differently in batches of other sizes. Scores of two classes are one number, and so near to each
// other by chance: there it is what float32 may be off.
func nearness(k int) float64 {
	if k == 2 {
		return 1e-5
	}
	return 1. / 512
}

// scores are different rows of scores, found by the difference of their two largest ones.
type scores struct {
	first map[scoreCell]int32
	rows  []*acc.SampleRow
	next  []int32 // of the same cell; -1 = none
}

// scoreCell has the rows of one size whose margin is in a cell. Rows that differ are seldom in one: of as sure rows of
// many classes the class tells, of those with two or three scores above -Inf which these are.
type scoreCell struct {
	size   int32 // binary exponent of the largest score
	class  int32 // of it; -1 in the first cell, where near rows may have another
	margin int64
	none   uint64 // of the classes whose score is -Inf
}

// add returns the place of the row's scores, and whether they were known; else it adds them.
func (s *scores) add(row *acc.SampleRow) (place int, known bool) {
	if s.first == nil {
		s.first = make(map[scoreCell]int32, 64)
	}
	// A cell is four times as wide as margins of near scores are apart.
	const cells, most = 8, 1 << 50
	top, second := twoLargest(row.Z)
	_, size := math.Frexp(max(1, math.Abs(float64(top))))
	at := (float64(top) - float64(second)) / (cells * nearness(len(row.Z)) * math.Ldexp(1, size))
	at = min(at, most) // +Inf where all others are -Inf
	class, none := slices.Index(row.Z, top), noneOf(row.Z)
	cellOf := func(at float64) scoreCell {
		c := scoreCell{size: int32(size), class: -1, margin: int64(math.Floor(at)), none: none}
		if c.margin > 0 {
			c.class = int32(class)
		}
		return c
	}
	cell := cellOf(at)
	for _, x := range [...]float64{at, at - 2./cells, at + 2./cells} {
		near := cellOf(x)
		if near == cell && x != at {
			continue
		}
		first, any := s.first[near]
		if !any {
			first = -1
		}
		for i := first; i >= 0; i = s.next[i] {
			if nearlyEqual(s.rows[i].Z, row.Z) {
				return int(i), true
			}
		}
	}
	first, any := s.first[cell]
	if !any {
		first = -1
	}
	s.first[cell] = int32(len(s.rows))
	s.rows, s.next = append(s.rows, row), append(s.next, first)
	return len(s.rows) - 1, false
}

// noneOf is a hash of the classes whose score is -Inf; 0 = none is.
func noneOf(scores []float32) (h uint64) {
	const odd = 0x9e3779b97f4a7c15
	for j, x := range scores {
		if x < -math.MaxFloat32 {
			h = (h ^ uint64(j+1)) * odd
		}
	}
	return h
}

// nearlyEqual reports whether scores of as many classes may be those of one input.
func nearlyEqual(a, b []float32) bool {
	of := float32(nearness(len(a)))
	for j, x := range a {
		if y := b[j]; x != y && !(max(x-y, y-x) <= of*max(1, x, -x)) { // not if one is infinite
			return false
		}
	}
	return true
}
