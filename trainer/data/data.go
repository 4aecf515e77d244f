package data

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/trainer/philox"
)

// Set is a view of labelled rows: features are not copied, and are read-only.
type Set struct {
	// D is the number of features, K the number of classes.
	D, K int
	// X has the features as float32, rows of D; or Half has them as the bits of IEEE 754 binary16, at half the memory.
	// The others are nil. Or Stored has them in files.
	X      []float32
	Half   []uint16
	Stored *Stored
	// Mean and SD, where not nil, change each feature to (x − Mean)/SD as it is read.
	Mean, SD []float64
	// Index has for each of the n rows its row in X, Half or Stored; nil means the same row.
	Index []int32
	// Y has the n labels, each in [0, K).
	Y []int32
	// Time has the n event times in any unit, or is nil: then rows are in order of time.
	Time []int64
}

// N is the number of rows.
func (s *Set) N() int { return len(s.Y) }

// stored is the number of rows of X, Half or Stored.
func (s *Set) stored() int {
	if s.Stored != nil {
		return s.Stored.Rows()
	}
	return max(len(s.X), len(s.Half)) / s.D
}

// values checks the number of features.
func (s *Set) values() error {
	have := len(s.X) + len(s.Half)
	if s.Stored != nil {
		if s.X != nil || s.Half != nil || s.Stored.d != s.D || s.Index == nil && s.stored() != s.N() {
			return fmt.Errorf("training rows: %d stored rows of %d features and %d in memory for %d rows of %d",
				s.stored(), s.Stored.d, have, s.N(), s.D)
		}
		return nil
	}
	if s.X != nil && s.Half != nil || have%s.D != 0 || s.Index == nil && have != s.N()*s.D {
		return fmt.Errorf("training rows: %d float32 and %d float16 feature values for %d rows of %d, "+
			"allowed one of them, complete", len(s.X), len(s.Half), s.N(), s.D)
	}
	return nil
}

// Check returns an error that names the row and column of the first feature that is not finite, or label out of range.
func (s *Set) Check() error {
	if s.D < 1 || s.K < 2 {
		return fmt.Errorf("training rows: %d features and %d classes, allowed at least 1 and 2", s.D, s.K)
	}
	if err := s.values(); err != nil {
		return err
	}
	if s.Index != nil && len(s.Index) != s.N() || s.Time != nil && len(s.Time) != s.N() {
		return fmt.Errorf("training rows: %d times and %d places for %d rows, allowed none or one a row",
			len(s.Time), len(s.Index), s.N())
	}
	for i, r := range s.Index {
		if r < 0 || int(r) >= s.stored() {
			return fmt.Errorf("training row %d: place %d, allowed 0..%d", i, r, s.stored()-1)
		}
	}
	for i, y := range s.Y {
		if y < 0 || int(y) >= s.K {
			return fmt.Errorf("training row %d: label %d, allowed 0..%d", i, y, s.K-1)
		}
	}
	if s.Stored != nil { // files may be large; their opener has checked them by Stored.Scan
		return nil
	}
	var scratch []float32
	for i := range s.N() {
		scratch = s.Chunk(scratch, i, 1)
		for j, v := range scratch {
			if v-v != 0 {
				return fmt.Errorf("training row %d, feature %d: %v, allowed finite numbers", i, j, v)
			}
		}
	}
	return nil
}

// place is where row i is stored.
func (s *Set) place(i int) int {
	if s.Index != nil {
		return int(s.Index[i])
	}
	return i
}

// Gather copies the features of rows, scaled where they are to be, to dst, len(rows)×D.
func (s *Set) Gather(dst []float32, rows []int32) {
	defer s.scale(dst[:len(rows)*s.D])
	if s.Stored != nil {
		s.Stored.gather(dst, len(rows), func(i int) int { return s.place(int(rows[i])) })
		return
	}
	for i, r := range rows {
		from := s.place(int(r)) * s.D
		if to := dst[i*s.D : (i+1)*s.D]; s.Half != nil {
			kernel.HalfToFloat32(to, s.Half[from:from+s.D])
		} else {
			copy(to, s.X[from:])
		}
	}
}

// scale changes features, rows of D, to (x − Mean)/SD; without these it does nothing.
func (s *Set) scale(x []float32) {
	for ; s.Mean != nil && len(x) > 0; x = x[s.D:] {
		for j, v := range x[:s.D] {
			x[j] = float32((float64(v) - s.Mean[j]) / s.SD[j])
		}
	}
}

// Chunk returns the features of rows from to from+n−1, n×D: a part of X where they lie there as they are, one after the
// other, else scratch, grown as needed, with a copy.
func (s *Set) Chunk(scratch []float32, from, n int) []float32 {
	if s.Index == nil && s.X != nil && s.Mean == nil {
		return s.X[from*s.D : (from+n)*s.D]
	}
	if cap(scratch) < n*s.D {
		scratch = make([]float32, n*s.D)
	}
	scratch = scratch[:n*s.D]
	switch {
	case s.Stored != nil:
		s.Stored.gather(scratch, n, func(i int) int { return s.place(from + i) })
	case s.Index != nil:
		for i := range n {
			row := [1]int32{int32(from + i)}
			s.Gather(scratch[i*s.D:(i+1)*s.D], row[:])
		}
		return scratch
	case s.Half != nil:
		kernel.HalfToFloat32(scratch, s.Half[from*s.D:(from+n)*s.D])
	default:
		copy(scratch, s.X[from*s.D:])
	}
	s.scale(scratch)
	return scratch
}

// Select is a view of the given rows, in their order; features are not copied.
func (s *Set) Select(rows []int32) *Set {
	out := &Set{
		D: s.D, K: s.K,
		X: s.X, Half: s.Half, Stored: s.Stored,
		Mean: s.Mean, SD: s.SD,
		Index: make([]int32, len(rows)),
		Y:     make([]int32, len(rows)),
	}
	if s.Time != nil {
		out.Time = make([]int64, len(rows))
	}
	for i, r := range rows {
		out.Index[i], out.Y[i] = int32(s.place(int(r))), s.Y[r]
		if s.Time != nil {
			out.Time[i] = s.Time[r]
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
