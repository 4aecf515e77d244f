package philox

import (
	"math"
	"slices"
	"testing"
)

// TestPublishedVectors: kat_vectors of the Random123 library, philox4x32 10.
func TestPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Block(c.counter, c.key); got != c.want {
			t.Errorf("Block(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	base := Stream{Seed: 1, Purpose: Mask, A: 2, B: 3}
	seen := map[[4]uint32]Stream{}
	for _, s := range []Stream{
		base,
		{Seed: 2, Purpose: Mask, A: 2, B: 3},
		{Seed: 1 << 32, Purpose: Mask, A: 2, B: 3},
		{Seed: 1, Purpose: Order, A: 2, B: 3},
		{Seed: 1, Purpose: Mask, A: 3, B: 3},
		{Seed: 1, Purpose: Mask, A: 2, B: 2},
	} {
		w := s.Block4(0)
		if other, ok := seen[w]; ok {
			t.Errorf("%+v and %+v draw the same words", s, other)
		}
		seen[w] = s
	}
	src := Source{Stream: base}
	for i := range uint32(11) {
		if got, want := src.Next(), base.Word(i); got != want {
			t.Errorf("word %d: source %x, stream %x", i, got, want)
		}
	}
}

func TestBernoulli(t *testing.T) {
	const n = 40001
	s := Stream{Seed: 7, Purpose: Mask}
	for _, q := range []float64{0, 0.05, 0.5, 0.9, 1} {
		mask := make([]uint8, n)
		for i := range mask {
			mask[i] = 9
		}
		s.Bernoulli(mask, q)
		var kept float64
		for i, m := range mask {
			if want := uint64(s.Word(uint32(i))) < Threshold(q); (m == 1) != want || m > 1 {
				t.Fatalf("q %v: mask %d is %d, want kept %v", q, i, m, want)
			}
			kept += float64(m)
		}
		// Five standard deviations; exact at 0 and 1.
		if d := math.Abs(kept/n - q); d > 5*math.Sqrt(q*(1-q)/n) {
			t.Errorf("q %v: kept %v", q, kept/n)
		}
	}
}

func TestShuffleIsAUniformPermutation(t *testing.T) {
	counts := map[[3]int32]int{}
	for seed := range uint64(6000) {
		rows := []int32{0, 1, 2}
		src := Source{Stream: Stream{Seed: seed, Purpose: Order}}
		src.Shuffle(rows)
		counts[[3]int32(rows)]++
		slices.Sort(rows)
		if !slices.Equal(rows, []int32{0, 1, 2}) {
			t.Fatalf("seed %d: not a permutation: %v", seed, rows)
		}
	}
	for p, n := range counts {
		if n < 850 || n > 1150 { // 1000 ± 5.2 standard deviations
			t.Errorf("permutation %v: %d of 6000", p, n)
		}
	}
	if len(counts) != 6 {
		t.Errorf("%d permutations, want 6", len(counts))
	}
}

func TestFloat64IsInside(t *testing.T) {
	src := Source{Stream: Stream{Seed: 3}}
	var sum float64
	for range 10000 {
		v := src.Float64()
		if !(v > 0 && v < 1) {
			t.Fatalf("%v", v)
		}
		sum += v
	}
	if math.Abs(sum/10000-0.5) > 0.015 {
		t.Errorf("mean %v", sum/10000)
	}
}

func BenchmarkBernoulli(b *testing.B) {
	mask := make([]uint8, 1<<16)
	b.SetBytes(1 << 16)
	for b.Loop() {
		Stream{Seed: 1}.Bernoulli(mask, 0.7)
	}
}

// Word returns word i.
func (s Stream) Word(i uint32) uint32 { return s.Block4(i / 4)[i%4] }
