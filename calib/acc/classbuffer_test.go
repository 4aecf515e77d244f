package acc

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// countRows are rows of weight 1 for ClassCounts alone, as a block and as what Predict and Label are told.
type countRows struct {
	b    *Block
	conf []float64
	all  []int32
}

// randCounts draws rows; a fifth have a label of a random class, but all predictions are among few classes, so that
// many rows are of one pair.
func randCounts(rng *rand.Rand, k, n, few int) *countRows {
	r := &countRows{b: NewBlock(k)}
	r.b.grow(n)
	r.b.rows = r.b.rows[:n]
	for i := range n {
		arg, conf := rng.IntN(few), randConf(rng)
		y := arg
		if rng.IntN(5) == 0 {
			y = rng.IntN(k)
		}
		hit := uint16(0)
		if y == arg {
			hit = 1
		}
		r.b.rows[i].Arg, r.b.y[i], r.b.of.Hit[i], r.b.csf[csfMSP].Key[i] = arg, int32(y), hit, uint16(2*cellOf(conf))
		r.conf, r.all = append(r.conf, conf), append(r.all, int32(i))
	}
	return r
}

// block adds the given rows as a block's.
func (r *countRows) block(c *ClassCounts, rows []int32, predict, label bool) {
	if n := int64(len(rows)); predict {
		c.predictRows(r.b, rows, n<<fixBits)
	}
	if n := int64(len(rows)); label {
		c.labelRows(r.b, rows, n<<fixBits)
	}
}

// each adds them one by one to the tables.
func (r *countRows) each(t *testing.T, c *ClassCounts, rows []int32, predict, label bool) {
	t.Helper()
	for _, i := range rows {
		arg := r.b.rows[i].Arg
		if predict {
			if err := c.Predict(arg, r.conf[i], 1); err != nil {
				t.Fatal(err)
			}
		}
		if label {
			if err := c.Label(arg, r.conf[i], int(r.b.y[i]), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBufferAgainstTables: whatever is done between blocks, their rows are counted as one by one, in the same bytes:
// with pairs in the hash table, pairs in the buffer and more pairs than are kept, and more rows of a pair than a
// counter holds.
func TestBufferAgainstTables(t *testing.T) {
	for _, k := range []int{2, 3, 10, 17, 100, pairClasses, pairClasses + 1} {
		rng := rand.New(rand.NewPCG(uint64(k), 12))
		got, want := must(NewClassCounts(k)), must(NewClassCounts(k))
		check := func(what string) {
			t.Helper()
			if !bytes.Equal(encode(t, got), encode(t, want)) {
				t.Fatalf("K = %d, %s: rows by block differ from those one by one", k, what)
			}
		}
		inBuffer := false
		for step := range 60 {
			few := k
			if step%2 == 0 {
				few = 1
			}
			r := randCounts(rng, k, 3000, few)
			rng.Shuffle(len(r.all), func(i, j int) { r.all[i], r.all[j] = r.all[j], r.all[i] })
			rows, kind := r.all[:rng.IntN(len(r.all))], rng.IntN(3)
			r.block(got, rows, kind < 2, kind > 0)
			r.each(t, want, rows, kind < 2, kind > 0)
			inBuffer = inBuffer || got.buffer.pairs != nil
			switch rng.IntN(12) {
			case 0:
				check("encoded")
			case 1:
				got = got.Clone()
				check("cloned")
			case 2:
				if got.Truncated() != want.Truncated() {
					t.Fatalf("K = %d: truncated %v", k, got.Truncated())
				}
			case 3:
				other := got.Clone()
				r.block(other, rows, true, true)
				got, want = mustMerge(t, got, other), mustMerge(t, want, want.Clone())
				r.each(t, want, rows, true, true)
			case 4:
				if step < 20 {
					got.Reset()
					want.Reset()
				}
			}
		}
		check("at the end")
		if inBuffer != (k <= pairClasses) {
			t.Errorf("K = %d: the buffer has pairs: %v", k, inBuffer)
		}
		for _, n := range got.buffer.pairs {
			if n != 0 {
				t.Fatalf("K = %d: rows were left in the buffer", k)
			}
		}
	}
}

// TestBufferedPairsAreBounded: of more pairs than are kept, seen in blocks, those of the least hashes are.
func TestBufferedPairsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	got, want := must(NewClassCounts(pairClasses)), must(NewClassCounts(pairClasses))
	for step := range 40 {
		r := randCounts(rng, pairClasses, 6000, pairClasses)
		r.block(got, r.all, true, true)
		r.each(t, want, r.all, true, true)
		if step%15 == 0 && !bytes.Equal(encode(t, got), encode(t, want)) {
			t.Fatalf("block %d: rows by block differ from those one by one", step)
		}
	}
	if !got.Truncated() || got.buffer.pairs == nil {
		t.Fatalf("truncated %v, pairs in the buffer %v", got.Truncated(), got.buffer.pairs != nil)
	}
	if !bytes.Equal(encode(t, got), encode(t, want)) {
		t.Fatal("rows by block differ from those one by one")
	}
}

// TestBufferLaws: counts that blocks have filled follow the laws, with pairs in the buffer and without.
func TestBufferLaws(t *testing.T) {
	for _, k := range []int{4, 20, pairClasses + 1} {
		testLaws(t, func() *ClassCounts { return must(NewClassCounts(k)) },
			func(rng *rand.Rand) func(*ClassCounts) error {
				r, kind := randCounts(rng, k, 1+rng.IntN(64), 1+rng.IntN(k)), rng.IntN(3)
				return func(c *ClassCounts) error {
					r.block(c, r.all, kind < 2, kind > 0)
					return nil
				}
			})
	}
}

// TestCountersWrap: a counter of the buffer that comes round has lost nothing, of right rows and of wrong ones.
func TestCountersWrap(t *testing.T) {
	const k, n = 2, 5*pairWrap + 3
	c := must(NewClassCounts(k))
	c.wrong.add(c.pair(0, 1), pairSum{n: 1}) // from here on there are pairs in the buffer
	c.labelled, c.labelledW, c.wrongRows = 1, fixOne, 1
	r := randCounts(rand.New(rand.NewPCG(1, 1)), k, n, 1)
	for i := range n {
		r.b.y[i], r.b.csf[csfMSP].Key[i] = int32(i%2), uint16(2*cellOf(.5))
		r.b.of.Hit[i] = uint16(1 - i%2)
	}
	r.block(c, r.all, false, true)
	r.block(c, r.all[:1], false, true)
	if c.buffer.pairs == nil {
		t.Fatal("there are no pairs in the buffer")
	}
	for cell := range c.Cells() {
		if want := (Count{n/2 + 2, n/2 + 2}); cell.Right != want {
			t.Errorf("right rows: %+v, want %+v", cell.Right, want)
		}
	}
	for pair := range c.Pairs() {
		if want := (Count{n/2 + 1, n/2 + 1}); pair.Count != want {
			t.Errorf("wrong rows: %+v, want %+v", pair.Count, want)
		}
	}
}

// BenchmarkClassFold is what a look at the class counts costs after so many rows since the last look: the buffer's rows
// move into the tables. BenchmarkUpdate has no look in it; a pane has one.
func BenchmarkClassFold(b *testing.B) {
	for _, k := range []int{10, 100} {
		for _, n := range []int{100, 10_000, 100_000} {
			b.Run(fmt.Sprintf("K=%d/rows=%d", k, n), func(b *testing.B) {
				r, c := randCounts(rand.New(rand.NewPCG(1, 1)), k, n, k), must(NewClassCounts(k))
				r.block(c, r.all, true, true)
				for b.Loop() {
					b.StopTimer()
					r.block(c, r.all, true, true)
					b.StartTimer()
					c.fold()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
			})
		}
	}
}

// TestBlockIsReused: what a block was told of earlier rows, weights and served confidences too, is forgotten.
func TestBlockIsReused(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const k = 7
	again := NewBlock(k)
	for step := range 60 {
		in := randBlock(rng, k, 1+rng.IntN(60), rng.IntN(2) == 0, rng.IntN(3) == 0)
		if rng.IntN(2) == 0 {
			for i := range in.served {
				in.served[i] = math.NaN()
			}
		}
		fresh := NewBlock(k)
		one, other := countingK(k), countingK(k)
		for _, x := range []struct {
			b *Block
			s *Set
		}{{again, one}, {fresh, other}} {
			b, s := x.b, x.s
			rows := in.load(t, b)
			if b == again { // rows that were told something else before
				for range 5 {
					i := rng.IntN(len(rows))
					if err := b.SetRow(i, 0, randWeight(rng), 1, .5); err != nil {
						t.Fatal(err)
					}
					if err := b.SetRow(i, in.y[i], in.w[i], in.lag[i], in.served[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if step%3 == 0 { // and some are not set at all
				rows = rows[:len(rows)/2]
			}
			if err := s.PredictRows(b, rows); err != nil {
				t.Fatal(err)
			}
			if err := s.LabelRows(b, rows); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(encode(t, one), encode(t, other)) {
			t.Fatalf("step %d: a block that was used before gives other bytes", step)
		}
	}
}

func countingK(k int) *Set {
	s := must(New(Config{K: k}))
	s.CountClasses(true)
	return s
}
