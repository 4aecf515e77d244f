package acc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newClassCounts() *ClassCounts { return must(NewClassCounts(5)) }

func classCountsRow(rng *rand.Rand) func(*ClassCounts) error {
	arg, conf, y, w := rng.IntN(5), randConf(rng), rng.IntN(5), randWeight(rng)
	kind := rng.IntN(3)
	return func(c *ClassCounts) error {
		if kind > 0 {
			if err := c.Label(arg, conf, y, w); err != nil {
				return err
			}
		}
		if kind < 2 {
			return c.Predict(arg, conf, w)
		}
		return nil
	}
}

func countingSet() *Set {
	s := newSet()
	s.CountClasses(true)
	return s
}

// mixedRow is a row of a set that counts classes of some rows only, as after it was switched on or off.
func mixedRow(rng *rand.Rand) func(*Set) error {
	add, on := setRow(rng), rng.IntN(3) > 0
	return func(s *Set) error {
		s.CountClasses(on)
		return add(s)
	}
}

func TestClassCountsLaws(t *testing.T) {
	testLaws(t, newClassCounts, classCountsRow)
	testLaws(t, countingSet, mixedRow)
	testShape(t, newClassCounts(), must(NewClassCounts(6)))
}

func FuzzClassCounts(f *testing.F)    { fuzzDecoder(f, newClassCounts, classCountsRow) }
func FuzzSetWithClasses(f *testing.F) { fuzzDecoder(f, countingSet, mixedRow) }

// TestClassCountsAgainstMaps: counts of weighted rows are those of plain maps.
func TestClassCountsAgainstMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const k = 40
	c := must(NewClassCounts(k))
	seen, right := map[[2]int]Count{}, map[[2]int]Count{}
	wrong := map[[3]int]Count{}
	plus := func(a Count, w float64) Count { return Count{a.N + 1, a.W + unfix(fix(w))} }
	band := func(conf float64) int {
		switch {
		case conf <= .6:
			return 0
		case conf <= .9:
			return 1
		case conf <= .99:
			return 2
		}
		return 3
	}
	for range 20_000 {
		arg, conf, y, w := rng.IntN(k), randConf(rng), rng.IntN(k), float64(1+rng.IntN(3))
		if rng.IntN(3) == 0 {
			y = arg
		}
		b := band(conf)
		if err := errors.Join(c.Predict(arg, conf, w), c.Label(arg, conf, y, w)); err != nil {
			t.Fatal(err)
		}
		seen[[2]int{arg, b}] = plus(seen[[2]int{arg, b}], w)
		if arg == y {
			right[[2]int{arg, b}] = plus(right[[2]int{arg, b}], w)
		} else {
			wrong[[3]int{arg, b, y}] = plus(wrong[[3]int{arg, b, y}], w)
		}
	}
	for cell := range c.Cells() {
		at := [2]int{cell.Class, cell.Band}
		if cell.Seen != seen[at] || cell.Right != right[at] {
			t.Fatalf("cell %+v, want %+v and %+v", cell, seen[at], right[at])
		}
		delete(seen, at)
	}
	for pair := range c.Pairs() {
		at := [3]int{pair.Class, pair.Band, pair.Label}
		if pair.Count != wrong[at] {
			t.Fatalf("pair %+v, want %+v", pair, wrong[at])
		}
		delete(wrong, at)
	}
	if len(seen) != 0 || len(wrong) != 0 || c.Truncated() {
		t.Errorf("%d cells and %d pairs are missing, truncated %v", len(seen), len(wrong), c.Truncated())
	}
}

// TestBandEdges: bands are (lo, hi], in float64.
func TestBandEdges(t *testing.T) {
	for band, hi := range []float64{.6, .9, .99, 1} {
		if got := BandOf(hi); got != band {
			t.Errorf("BandOf(%v) = %d, want %d", hi, got, band)
		}
		if got := BandOf(math.Nextafter(hi, 0)); got != band {
			t.Errorf("just below %v: band %d, want %d", hi, got, band)
		}
		if band < Bands-1 {
			if got := BandOf(math.Nextafter(hi, 1)); got != band+1 {
				t.Errorf("just above %v: band %d, want %d", hi, got, band+1)
			}
		}
	}
}

// TestClassesByBlock: a block gives the bytes of its rows one by one.
func TestClassesByBlock(t *testing.T) {
	for _, k := range []int{2, 10, 300} {
		for _, weighted := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(uint64(k), 8))
			in := randBlock(rng, k, 200, false, weighted)
			b := NewBlock(k)
			rows := in.load(t, b)
			one, many := must(New(Config{K: k})), must(New(Config{K: k}))
			one.CountClasses(true)
			many.CountClasses(true)
			if err := errors.Join(many.PredictRows(b, rows), many.LabelRows(b, rows)); err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				r := *b.Row(i)
				v, z := in.values(b, i)
				if err := errors.Join(one.Predict(r, in.w[i]),
					one.LabelScaled(r, v, z, Truth{in.y[i], b.of.NLL[i] / in.w[i], in.w[i], in.lag[i],
						in.served[i]})); err != nil {
					t.Fatal(err)
				}
			}
			if n, _ := many.Classes.Total(); n != 200 || !bytes.Equal(encode(t, many.Classes), encode(t, one.Classes)) {
				t.Errorf("K = %d: %d rows by block differ from those one by one", k, n)
			}
		}
	}
}

// manyPairs draws rows of more pairs than are kept.
func manyPairs(rng *rand.Rand, n int) []func(*ClassCounts) error {
	var rows []func(*ClassCounts) error
	for range n {
		arg, y := rng.IntN(400), rng.IntN(400)
		if rng.IntN(2) == 0 { // some pairs have many rows
			arg, y = rng.IntN(20), rng.IntN(20)
		}
		conf := .3 + .65*rng.Float64()
		rows = append(rows, func(c *ClassCounts) error { return c.Label(arg, conf, y, 1) })
	}
	return rows
}

// TestPairsAreBounded: of too many pairs those of the least hashes are kept, with exact counts, in the same bytes for
// every order and split; all totals stay exact.
func TestPairsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	rows := manyPairs(rng, 60_000)
	mk := func() *ClassCounts { return must(NewClassCounts(400)) }
	whole := mk()
	all := map[uint64]int64{}
	for _, add := range rows {
		one := mk()
		if err := errors.Join(add(whole), add(one)); err != nil {
			t.Fatal(err)
		}
		for i, key := range one.wrong.keys {
			all[key] += one.wrong.sums[i].n
		}
	}
	want := encode(t, whole)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b uint64) int { return cmp.Compare(mix64(a), mix64(b)) })
	if len(keys) < 3*MaxPairs/2 {
		t.Fatalf("%d pairs are too few", len(keys))
	}
	if !whole.Truncated() || len(whole.wrong.keys) != MaxPairs {
		t.Fatalf("%d pairs, truncated %v", len(whole.wrong.keys), whole.Truncated())
	}
	for i, key := range whole.wrong.keys {
		if mix64(key) > mix64(keys[MaxPairs-1]) || whole.wrong.sums[i].n != all[key] {
			t.Fatalf("pair %d of %d rows, want %d", key, whole.wrong.sums[i].n, all[key])
		}
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		parts := []*ClassCounts{mk(), mk(), mk(), mk()}
		for i, add := range rows {
			part := parts[min(3, r.IntN(40))] // one of them is truncated, the others are not
			if err := add(part); err != nil {
				t.Fatal(err)
			}
			if i == 30_000 {
				back := mk()
				if err := back.UnmarshalBinary(encode(t, parts[3])); err != nil {
					t.Fatal(err)
				}
				parts[3] = back
			}
		}
		r.Shuffle(4, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		got := mustMerge(t, parts[0], parts[1], mustMerge(t, parts[2], parts[3]))
		if !bytes.Equal(encode(t, got), want) {
			t.Fatalf("seed %d: another split gives other bytes", seed)
		}
	}
	if got := whole.wrong.bytes(); got > 1<<20 {
		t.Errorf("%d bytes of pairs, want at most 1 MiB", got)
	}
}

func TestClassCountsRefused(t *testing.T) {
	c := newClassCounts()
	for name, err := range map[string]error{
		"class": c.Predict(5, .5, 1), "negative class": c.Predict(-1, .5, 1), "confidence": c.Predict(1, 1.5, 1),
		"NaN":    c.Predict(1, math.NaN(), 1),
		"weight": c.Predict(1, .5, 0), "label": c.Label(1, .5, 5, 1), "negative label": c.Label(1, .5, -1, 1),
	} {
		if !errors.Is(err, ErrValue) {
			t.Errorf("%s: got %v, want ErrValue", name, err)
		}
	}
	if _, err := NewClassCounts(1); !errors.Is(err, ErrShape) {
		t.Errorf("one class: %v", err)
	}
	if !bytes.Equal(encode(t, c), encode(t, newClassCounts())) {
		t.Error("refused rows changed something")
	}
	// More rows by class than the set has: its overflow checks would not cover them.
	s := newSet()
	s.Classes = newClassCounts()
	if err := s.Classes.Predict(1, .5, 1); err != nil {
		t.Fatal(err)
	}
	if err := newSet().UnmarshalBinary(encode(t, s)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("classes without predictions: %v", err)
	}
}

// TestClassCountsAllocateNothing per row, once the cells are there.
func TestClassCountsAllocateNothing(t *testing.T) {
	for _, k := range []int{10, 100, 200} {
		testClassCountsAllocateNothing(t, k)
	}
}

func testClassCountsAllocateNothing(t *testing.T, k int) {
	t.Helper()
	f := newFreshRows(k, k<<17)
	s, b := must(New(Config{K: k})), NewBlock(k)
	s.CountClasses(true)
	update := func(block *Block, at int) error {
		return errors.Join(f.set(block, at), s.PredictRows(block, f.all), s.LabelRows(block, f.all))
	}
	all := func() {
		s.Reset()
		for at := 0; at+len(f.all) <= len(f.y); at += len(f.all) {
			b.Score(f.z[at*f.k:(at+len(f.all))*f.k], false)
			if err := update(b, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	all()
	if got := testing.AllocsPerRun(3, all); got != 0 {
		t.Errorf("K = %d: %v allocations in warm rows, want 0", k, got)
	}
}

// BenchmarkClassCounts is what the class counts add to the update of a row that is predicted and labelled:
// BenchmarkUpdate with them. The bar is that of all accumulators.
func BenchmarkClassCounts(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		f := newFreshRows(k, benchBytes)
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("K=%d/classes=%v", k, on), func(b *testing.B) {
				s, block := must(New(Config{K: k})), NewBlock(k)
				s.CountClasses(on)
				update := func(block *Block, at int) error {
					if err := f.set(block, at); err != nil {
						return err
					}
					if err := s.PredictRows(block, f.all); err != nil {
						return err
					}
					return s.LabelRows(block, f.all)
				}
				var updates []float64
				for b.Loop() {
					_, u, err := f.blocks(block, update)
					if err != nil {
						b.Fatal(err)
					}
					updates = append(updates, u...)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(updates), "update-ns")
				b.ReportMetric(slices.Min(updates), "least-ns")
				b.ReportMetric(75+.4*float64(k), "bar-ns")
			})
		}
	}
}

// TestClassCountsSize prints what docs/format.md quotes of a Set's class counts, encoded and in memory.
func TestClassCountsSize(t *testing.T) {
	for _, x := range []struct{ k, rows, want int }{{10, 100, 196}, {10, 10_000, 1_058}, {1000, 10_000, 20_898},
		{32_000, 10_000, 57_398}} {
		rng := rand.New(rand.NewPCG(1, 1))
		c := must(NewClassCounts(x.k))
		for range x.rows {
			arg, conf := rng.IntN(x.k), rng.Float64()
			y := arg
			if rng.IntN(5) == 0 {
				y = rng.IntN(x.k)
			}
			if err := errors.Join(c.Predict(arg, conf, 1), c.Label(arg, conf, y, 1)); err != nil {
				t.Fatal(err)
			}
		}
		got := len(encode(t, c))
		t.Logf("K=%d, %d rows: %d bytes, %d in memory", x.k, x.rows, got, c.cells.bytes()+c.wrong.bytes())
		if got > x.want*5/4 {
			t.Errorf("K=%d, %d rows: %d bytes, want about %d", x.k, x.rows, got, x.want)
		}
	}
}
