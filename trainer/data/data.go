// Package data has what a head is trained on: features and labels as float32 and int32 slabs, their split by time, and
// the orders of mini-batches.
package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/trainer/philox"
)

// Set is a view of labelled rows: nothing is copied, and nobody writes to it.
type Set struct {
	// D is the number of features, K the number of classes.
	D, K int
	// X has the features, n×D.
	X []float32
	// Y has the n labels, each in [0, K).
	Y []int32
	// Time has the n event times in any unit, or is nil: then rows are in order of time.
	Time []int64
}

// N is the number of rows.
func (s *Set) N() int { return len(s.Y) }

// Check returns an error that names the row and column of the first feature that is not finite, or label out of range.
func (s *Set) Check() error {
	if s.D < 1 || s.K < 2 {
		return fmt.Errorf("training rows: %d features and %d classes, allowed at least 1 and 2", s.D, s.K)
	}
	if len(s.X) != s.N()*s.D {
		return fmt.Errorf("training rows: %d feature values for %d rows of %d", len(s.X), s.N(), s.D)
	}
	if s.Time != nil && len(s.Time) != s.N() {
		return fmt.Errorf("training rows: %d times for %d rows", len(s.Time), s.N())
	}
	for i, y := range s.Y {
		if y < 0 || int(y) >= s.K {
			return fmt.Errorf("training row %d: label %d, allowed 0..%d", i, y, s.K-1)
		}
	}
	for i, v := range s.X {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("training row %d, feature %d: %v, allowed finite numbers", i/s.D, i%s.D, v)
		}
	}
	return nil
}

// Subset copies the given rows, in their order.
func (s *Set) Subset(rows []int32) *Set {
	out := &Set{D: s.D, K: s.K, X: make([]float32, 0, len(rows)*s.D), Y: make([]int32, 0, len(rows))}
	for _, r := range rows {
		out.X = append(out.X, s.X[int(r)*s.D:(int(r)+1)*s.D]...)
		out.Y = append(out.Y, s.Y[r])
		if s.Time != nil {
			out.Time = append(out.Time, s.Time[r])
		}
	}
	return out
}

// ByTime returns all rows from the oldest to the newest, rows of equal time in their order.
func (s *Set) ByTime() []int32 {
	rows := Rows(s.N())
	if s.Time != nil {
		slices.SortStableFunc(rows, func(a, b int32) int {
			switch {
			case s.Time[a] < s.Time[b]:
				return -1
			case s.Time[a] > s.Time[b]:
				return 1
			}
			return 0
		})
	}
	return rows
}

// Rows are 0 … n−1.
func Rows(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// Shuffled permutes rows for an epoch, in place: a function of the rows, the seed and the epoch alone.
func Shuffled(rows []int32, seed uint64, epoch int) []int32 {
	src := philox.Source{Stream: philox.Stream{Seed: seed, Purpose: philox.Order, A: uint32(epoch)}}
	src.Shuffle(rows)
	return rows
}

// Batches is the number of mini-batches of n rows; the last may be smaller.
func Batches(n, batch int) int { return (n + batch - 1) / batch }
