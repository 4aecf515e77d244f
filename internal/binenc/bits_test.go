package binenc

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestColumns: what is written is read, whatever the sizes of numbers.
func TestColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var columns [][]uint64
		w := NewBitWriter([]byte("before"))
		for range rng.IntN(5) {
			c := make([]uint64, rng.IntN(40))
			size := rng.IntN(65)
			for i := range c {
				c[i] = rng.Uint64() >> (64 - rng.IntN(size+1))
				if rng.IntN(10) == 0 {
					c[i] = []uint64{0, 1, math.MaxInt64, math.MaxUint64}[rng.IntN(4)]
				}
			}
			w.Count(len(c))
			w.Column(c)
			columns = append(columns, c)
		}
		data, ok := bytes.CutPrefix(w.Close(), []byte("before"))
		if !ok {
			t.Fatal("what was there has changed")
		}
		r := NewBitReader(data)
		var scratch []uint64
		for _, want := range columns {
			if scratch = r.Column(scratch, r.Count(len(want))); !slices.Equal(scratch, want) {
				t.Fatalf("read %v of %v", scratch, want)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestColumnsRefuse: bytes that are missing or left over, and counts that cannot be.
func TestColumnsRefuse(t *testing.T) {
	w := NewBitWriter(nil)
	w.Count(3)
	w.Column([]uint64{1 << 40, 5, 7})
	whole := w.Close()
	for n := range len(whole) {
		r := NewBitReader(whole[:n])
		r.Column(nil, r.Count(3))
		if err := r.Close(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	r := NewBitReader(append(whole, 0))
	if r.Column(nil, r.Count(3)); !errors.Is(r.Close(), ErrCorrupt) {
		t.Error("a byte left over is no error")
	}
	r = NewBitReader(whole)
	if n := r.Count(2); n != 0 || !errors.Is(r.Err(), ErrCorrupt) {
		t.Errorf("a count above what is allowed: %d, %v", n, r.Err())
	}
}

func TestZigZag(t *testing.T) {
	for _, v := range []int64{0, -1, 1, -2, math.MaxInt64, math.MinInt64} {
		if got := UnZigZag(ZigZag(v)); got != v {
			t.Errorf("%d comes back as %d", v, got)
		}
	}
	if ZigZag(-1) != 1 || ZigZag(1) != 2 {
		t.Error("small integers do not stay small")
	}
}
