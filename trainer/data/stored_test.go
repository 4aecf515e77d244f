package data_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/trainer/data"
)

// matrix is n×d numbers that a float16 holds, and the same as bytes of a width.
func matrix(n, d, width int, seed uint64) (x []float32, raw []byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n * d {
		v := float32(r.IntN(2048)-1024) / 64
		x = append(x, v)
		switch width {
		case 2:
			raw = binary.LittleEndian.AppendUint16(raw, half.Bits(v))
		case 4:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		case 8:
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(float64(v)))
		}
	}
	return x, raw
}

// counting counts what is read.
type counting struct {
	io.ReaderAt
	calls int
	bytes int64
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.calls++
	c.bytes += int64(len(p))
	return c.ReaderAt.ReadAt(p, off)
}

// stored has 5 regions of three widths, between other bytes, and the same features in memory.
func stored(t testing.TB, d int, cache int64) (*data.Stored, *data.Set, *counting) {
	t.Helper()
	var file []byte
	var regions []data.Region
	var all []float32
	c := &counting{}
	for i, width := range []int{2, 4, 2, 8, 2} {
		n := 700 * (i + 1)
		x, raw := matrix(n, d, width, uint64(i))
		file = append(file, make([]byte, 13*i)...)
		regions = append(regions, data.Region{File: c, Name: "f", Offset: int64(len(file)), Rows: n, Width: width})
		file, all = append(file, raw...), append(all, x...)
	}
	c.ReaderAt = bytes.NewReader(file)
	s, err := data.NewStored(d, cache, regions...)
	if err != nil {
		t.Fatal(err)
	}
	n := len(all) / d
	if s.Rows() != n {
		t.Fatalf("%d rows, want %d", s.Rows(), n)
	}
	set := &data.Set{D: d, K: 2, X: all, Y: make([]int32, n)}
	return s, set, c
}

// scaledOf is a view of a set that is scaled as it is read, scaledPlainly a copy that is scaled.
func scaledOf(s *data.Set) *data.Set {
	out := *s
	for j := range s.D {
		out.Mean, out.SD = append(out.Mean, float64(j)-1.5), append(out.SD, .3+float64(j))
	}
	return &out
}

func scaledPlainly(s *data.Set) *data.Set {
	by, out := scaledOf(s), *s
	out.X = slices.Clone(s.X)
	for i, x := range s.X {
		out.X[i] = float32((float64(x) - by.Mean[i%s.D]) / by.SD[i%s.D])
	}
	return &out
}

func halves(x []float32) (out []uint16) {
	for _, v := range x {
		out = append(out, half.Bits(v))
	}
	return out
}

// TestStoredGivesTheSame: gathers and chunks of any rows are those of features in memory, whatever the cache holds, and
// scaled where they are to be.
func TestStoredGivesTheSame(t *testing.T) {
	testsize.Slow(t)
	for _, d := range []int{1, 3, 600} {
		for _, cache := range []int64{1, 3 << 20, 0} {
			s, want, _ := stored(t, d, cache)
			got := &data.Set{D: d, K: 2, Stored: s, Y: want.Y}
			if err := got.Check(); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(9, uint64(d)))
			view := data.Shuffled(data.Rows(want.N()), 3, 0)[:want.N()/2]
			scaled, plain := scaledOf(got), scaledPlainly(want)
			short := scaledOf(want)
			short.X, short.Half = nil, halves(want.X)
			for _, pair := range [][2]*data.Set{{got, want}, {got.Select(view), want.Select(view)}, {scaled, plain},
				{scaledOf(want), plain}, {short, plain}, {scaledOf(want).Select(view), plain.Select(view)},
				{scaled.Select(view), plain.Select(view)}, {short.Select(view), plain.Select(view)}} {
				for range 30 {
					rows := make([]int32, 1+r.IntN(64))
					near := r.IntN(pair[1].N())
					for i := range rows {
						rows[i] = int32(min(near+r.IntN(40), pair[1].N()-1))
						if i%3 == 0 {
							rows[i] = int32(r.IntN(pair[1].N()))
						}
					}
					a, b := make([]float32, len(rows)*d), make([]float32, len(rows)*d)
					pair[0].Gather(a, rows)
					pair[1].Gather(b, rows)
					from, n := r.IntN(pair[1].N()-100), 1+r.IntN(100)
					if !slices.Equal(a, b) || !slices.Equal(pair[0].Chunk(nil, from, n), pair[1].Chunk(nil, from, n)) {
						t.Fatalf("d %d, cache %d: other features", d, cache)
					}
				}
			}
			for _, rows := range [][]int32{data.Rows(want.N()), view, {}, {5, 5, 2}} {
				short, x, err := s.Pack(rows)
				packed := make([]float32, len(rows)*d)
				want.Gather(packed, rows)
				if err != nil || short != nil || !slices.Equal(x, packed) {
					t.Fatalf("%d rows packed into %d and %d values, %v", len(rows), len(short), len(x), err)
				}
			}
			if err := s.Scan(func(row int, finite bool) {
				if !finite {
					t.Errorf("row %d is not finite", row)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPackHalves: float16 stays float16, also where a block lies in two regions.
func TestPackHalves(t *testing.T) {
	const d, n = 1000, 900 // blocks of 524 rows
	raw := make([]byte, 2*d*n)
	for i := range d * n {
		binary.LittleEndian.PutUint16(raw[2*i:], uint16(i/d))
	}
	cut := 2 * d * 600
	s, err := data.NewStored(d, 0,
		data.Region{File: bytes.NewReader(raw[:cut]), Rows: 600, Width: 2},
		data.Region{File: bytes.NewReader(raw), Offset: int64(cut), Rows: n - 600, Width: 2})
	if err != nil {
		t.Fatal(err)
	}
	rows := data.Shuffled(data.Rows(n), 1, 1)[:n/2]
	half, x, err := s.Pack(rows)
	if err != nil || x != nil || len(half) != d*len(rows) {
		t.Fatalf("%d float16 and %d float32 values, %v", len(half), len(x), err)
	}
	for i, r := range rows {
		if half[i*d] != uint16(r) || half[i*d+d-1] != uint16(r) {
			t.Fatalf("row %d is %d, want %d", i, half[i*d], r)
		}
	}
	if got := s.Bytes(3); got != 2*3*d {
		t.Errorf("3 rows take %d bytes, want %d", got, 2*3*d)
	}
}

// TestStoredOrder: an order has every row once, is a function of seed and epoch, differs between epochs, mixes blocks,
// and an epoch in it reads each block about once though the cache holds a part of them.
func TestStoredOrder(t *testing.T) {
	const d, n, batch = 256, 1 << 16, 256
	raw := make([]byte, 2*d*n)
	c := &counting{ReaderAt: bytes.NewReader(raw)}
	s, err := data.NewStored(d, 160<<20/8, data.Region{File: c, Rows: n, Width: 2})
	if err != nil {
		t.Fatal(err)
	}
	set := &data.Set{D: d, K: 2, Stored: s, Y: make([]int32, n)}
	order := func(seed uint64, epoch int) []int32 { return set.Order(data.Rows(n), seed, epoch) }
	first := order(1, 0)
	if sorted := slices.Sorted(slices.Values(first)); !slices.Equal(sorted, data.Rows(n)) {
		t.Fatal("an order is no permutation")
	}
	if !slices.Equal(first, order(1, 0)) || slices.Equal(first, order(1, 1)) || slices.Equal(first, order(2, 0)) {
		t.Error("an order is not a function of seed and epoch")
	}
	if shuffled := set.Order(data.Shuffled(data.Rows(n), 5, 5), 1, 0); !slices.Equal(first, shuffled) {
		t.Error("an order depends on the order before")
	}
	// Neighbours of the order come from all over: their mean distance is n/3 in a full shuffle, and here in windows of
	// random blocks.
	var sum float64
	for i := 1; i < n; i++ {
		sum += math.Abs(float64(first[i] - first[i-1]))
	}
	if mean := sum / n; mean < n/5 {
		t.Errorf("mean distance of neighbours %.0f, want n/3 or so", mean)
	}
	x := make([]float32, batch*d)
	for from := 0; from < n; from += batch {
		set.Gather(x, first[from:from+batch])
	}
	if c.bytes > int64(len(raw))*11/10 {
		t.Errorf("%d bytes read of a file of %d", c.bytes, len(raw))
	}
	inMemory := &data.Set{D: 1, K: 2, X: make([]float32, 50), Y: make([]int32, 50)}
	if !slices.Equal(inMemory.Order(data.Rows(50), 4, 2), data.Shuffled(data.Rows(50), 4, 2)) {
		t.Error("rows in memory have another order")
	}
}

// TestStoredErrors: what cannot be read is not a number, and Err says why; bad regions are refused.
func TestStoredErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, raw := matrix(10, 3, 2, 1)
	s, err := data.NewStored(3, 0, data.Region{File: bytes.NewReader(raw[:40]), Name: "a.arrow", Rows: 10, Width: 2})
	if err != nil {
		t.Fatal(err)
	}
	set := &data.Set{D: 3, K: 2, Stored: s, Y: make([]int32, 10)}
	x := set.Chunk(nil, 0, 1)
	if x[0] != x[0] || s.Err() != nil {
		t.Errorf("row 0 is %v, %v", x, s.Err())
	}
	x = set.Chunk(nil, 9, 1)
	if x[0] == x[0] || !errors.Is(s.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("row 9 is %v, %v", x, s.Err())
	}
	if _, _, err := s.Pack(data.Rows(10)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("pack: %v", err)
	}
	if err := s.Scan(func(int, bool) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("scan: %v", err)
	}
	s, err = data.NewStored(3, 0, data.Region{File: failing{broken}, Name: "b.arrow", Rows: 10, Width: 4})
	if err != nil {
		t.Fatal(err)
	}
	if (&data.Set{D: 3, K: 2, Stored: s, Y: make([]int32, 10)}).Chunk(nil, 0, 10); !errors.Is(s.Err(), broken) {
		t.Errorf("got %v", s.Err())
	}
	for _, r := range []data.Region{
		{Rows: 1, Width: 3},
		{Rows: -1, Width: 2},
		{Rows: 1, Width: 2, Offset: -1},
		{Rows: math.MaxInt32 + 1, Width: 2},
	} {
		if _, err := data.NewStored(3, 0, r); err == nil {
			t.Errorf("region %+v is taken", r)
		}
	}
	bad := []uint16{0x3c00, 0x7c00, 0, 0xfe00, 0, 0}
	raw = nil
	for _, h := range bad {
		raw = binary.LittleEndian.AppendUint16(raw, h)
	}
	s, err = data.NewStored(2, 0, data.Region{File: bytes.NewReader(raw), Rows: 3, Width: 2})
	if err != nil {
		t.Fatal(err)
	}
	var finite []bool
	err = s.Scan(func(_ int, ok bool) { finite = append(finite, ok) })
	if err != nil || !slices.Equal(finite, []bool{false, false, true}) {
		t.Errorf("finite %v, %v", finite, err)
	}
	if check := (&data.Set{D: 3, K: 2, Stored: s, Y: make([]int32, 3)}).Check(); check == nil {
		t.Error("a set of another D is taken")
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }
