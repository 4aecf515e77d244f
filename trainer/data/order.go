package data

import (
	"slices"

	"github.com/plumbline/plumbline/trainer/philox"
)

// Order permutes rows for an epoch, in place: a function of the rows, the seed and the epoch alone. It is [Shuffled]
// where the features are in memory. Where they are in files, the blocks in which they lie are shuffled, and then the
// rows of a window of blocks at a time, 128 of 1 MiB: every order of blocks and every order inside such a window is
// equally likely, and each block is read once.
func (s *Set) Order(rows []int32, seed uint64, epoch int) []int32 {
	if s.Stored == nil {
		return Shuffled(rows, seed, epoch)
	}
	src := philox.Source{Stream: philox.Stream{Seed: seed, Purpose: philox.Order, A: uint32(epoch)}}
	block := func(r int32) int { return s.place(int(r)) / s.Stored.block }
	slices.SortStableFunc(rows, func(a, b int32) int { return s.place(int(a)) - s.place(int(b)) })
	var blocks [][]int32 // rows by block
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && block(rows[to]) == block(rows[from]) {
			to++
		}
		blocks = append(blocks, rows[from:to])
		from = to
	}
	order := Rows(len(blocks))
	src.Shuffle(order)
	out := make([]int32, 0, len(rows))
	for from := 0; from < len(order); from += s.Stored.window {
		start := len(out)
		for _, b := range order[from:min(from+s.Stored.window, len(order))] {
			out = append(out, blocks[b]...)
		}
		src.Shuffle(out[start:])
	}
	copy(rows, out)
	return rows
}

// ByPlace sorts rows by where their features lie: for a reader of all rows that needs no other order.
func (s *Set) ByPlace(rows []int32) []int32 {
	if s.Stored != nil {
		slices.SortFunc(rows, func(a, b int32) int { return s.place(int(a)) - s.place(int(b)) })
	}
	return rows
}

// Scan calls row with the features of all stored rows, in their order: a place, and whether all are finite. It returns
// the first error of reading.
func (s *Stored) Scan(row func(place int, finite bool)) error {
	for from := 0; from < s.Rows(); from += s.block {
		n := min(s.block, s.Rows()-from)
		half, x, err := s.read(from, n)
		if err != nil {
			return err
		}
		for i := range n {
			row(from+i, finiteHalves(part(half, i, s.d)) && finiteFloats(part(x, i, s.d)))
		}
	}
	return nil
}

// Pack reads rows into memory, one after the other in the order given: as float16 where all stored features are that,
// else as float32. Blocks are read from the first to the last, each once.
func (s *Stored) Pack(rows []int32) (half []uint16, x []float32, err error) {
	if s.width() == 2 {
		half = make([]uint16, len(rows)*s.d)
	} else {
		x = make([]float32, len(rows)*s.d)
	}
	order := Rows(len(rows))
	slices.SortFunc(order, func(a, b int32) int { return int(rows[a]) - int(rows[b]) })
	var b block
	for at, first := 0, -1; at < len(order); at++ {
		row := int(rows[order[at]])
		if start := row - row%s.block; start != first {
			first = start
			if n := min(s.block, s.Rows()-first); half != nil {
				b.half = make([]uint16, n*s.d)
				err = s.halves(first, b.half)
			} else {
				b.half, b.x, err = s.read(first, n)
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if to := int(order[at]) * s.d; half != nil {
			copy(half[to:to+s.d], b.half[(row-first)*s.d:])
		} else {
			b.row(x[to:to+s.d], row-first, s.d)
		}
	}
	return half, x, nil
}

// halves reads rows from row on, all of which are float16, as many as dst has room for.
func (s *Stored) halves(row int, dst []uint16) error {
	for n := len(dst) / s.d; n > 0; {
		r := s.region(row)
		m := min(n, s.first[r+1]-row)
		if err := s.readPart(r, row, m, bytesOf(dst[:m*s.d])); err != nil {
			return err
		}
		row, n, dst = row+m, n-m, dst[m*s.d:]
	}
	return nil
}

func part[T any](v []T, i, d int) []T {
	if v == nil {
		return nil
	}
	return v[i*d : (i+1)*d]
}

func finiteHalves(v []uint16) bool {
	const infinite = 0x7c00
	for _, h := range v {
		if h&infinite == infinite {
			return false
		}
	}
	return true
}

func finiteFloats(v []float32) bool {
	for _, f := range v {
		if f-f != 0 {
			return false
		}
	}
	return true
}
