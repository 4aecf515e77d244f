package acc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// blockInput is rows of all kinds: sharp and flat, with gaps beyond float32 and float64, ties, exact zeros and ones.
type blockInput struct {
	k      int
	probs  bool
	scores []float32
	y      []int
	w      []float64
	lag    []int64
	served []float64
}

func randBlock(rng *rand.Rand, k, n int, probs, weighted bool) *blockInput {
	in := &blockInput{k: k, probs: probs}
	for range n {
		row := make([]float32, k)
		scale := 3 * math.Exp(2*rng.NormFloat64())
		for j := range row {
			row[j] = float32(rng.NormFloat64() * scale)
		}
		switch rng.IntN(12) {
		case 0:
			clear(row) // all equal
		case 1:
			row[rng.IntN(k)] = 95 + 20*rng.Float32() // zero in float32, not in float64
		case 2:
			row[rng.IntN(k)] = 2000 // zero in float64 too
		}
		if probs {
			p := make([]float64, k)
			kernel.Logits(row, p)
			for j := range row {
				row[j] = float32(p[j])
			}
			if rng.IntN(20) == 0 {
				for j := range row {
					if row[j] == 0 {
						row[j] = float32(math.Copysign(0, -1))
					}
				}
			}
		}
		w, served := 1.0, math.NaN()
		if weighted && rng.IntN(2) == 0 {
			w = randWeight(rng)
		}
		if rng.IntN(2) == 0 {
			served = randConf(rng)
		}
		in.scores, in.y, in.w = append(in.scores, row...), append(in.y, rng.IntN(k)), append(in.w, w)
		in.lag, in.served = append(in.lag, rng.Int64N(1e12)-1e9), append(in.served, served)
	}
	return in
}

// load fills a block.
func (in *blockInput) load(t testing.TB, b *Block) []int32 {
	t.Helper()
	b.Score(in.scores, in.probs)
	var rows []int32
	for i := range in.y {
		if !b.Row(i).OK {
			t.Fatalf("row %d is not OK", i)
		}
		if err := b.SetRow(i, in.y[i], in.w[i], in.lag[i], in.served[i]); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, int32(i))
	}
	return rows
}

// values returns row i as the kernel left it.
func (in *blockInput) values(b *Block, i int) (v, z []float32) {
	return b.row(int32(i)), b.logits(int32(i))
}

// plainScaled is the rule for float32 rows, written out: probabilities of the kernel, but those of float64 where they
// are beside an edge, the largest that of a cell and others that of a bin, and where they are 0.
func plainScaled(r *kernel.Row, v, scores []float32, probs bool, bins int) (kernel.Row, []float64) {
	p, exact := make([]float64, len(v)), make([]float64, len(v))
	f64, _ := kernel.Probs(scores, exact)
	if !probs {
		f64, _ = kernel.Logits(scores, exact)
	}
	for j := range p {
		p[j] = min(1, float64(v[j])*r.Scale)
		if p[j] == 0 && exact[j] > 0 {
			p[j] = math.SmallestNonzeroFloat64
		}
		for e := 1; e < bins; e++ {
			if edge := float64(e) / float64(bins); math.Abs(p[j]-edge) < kernel.EdgeTolerance*edge {
				p[j] = exact[j]
			}
		}
	}
	settled := *r
	for e := 1; e < GridCells; e++ {
		if edge := float64(e) / GridCells; math.Abs(r.Conf-edge) < kernel.EdgeTolerance*edge {
			settled.Conf, settled.Second = f64.Conf, f64.Second
		}
	}
	return settled, p
}

// TestBlock: a block gives the bytes of its rows one by one, and those are near the bytes of the float64 form.
func TestBlock(t *testing.T) {
	for _, k := range []int{2, 7, 10, 64, 100, 300} {
		for mode := range 4 {
			rng := rand.New(rand.NewPCG(uint64(k), uint64(mode)))
			in := randBlock(rng, k, 400, mode&1 == 1, mode&2 == 2)
			block := NewBlock(k)
			rows := in.load(t, block)
			cfg := Config{K: k, Bins: []int{0, 1, 2, 24, 3600}[rng.IntN(5)],
				SoftTemperature: []float64{.01, .1, 1e-4}[rng.IntN(3)], SoftBins: 10 + rng.IntN(10)}
			one, many, plain := must(New(cfg)), must(New(cfg)), must(New(cfg))
			raw := make([]kernel.Row, 1)
			for i := range rows {
				r := *block.Row(i)
				v, z := in.values(block, i)
				nll := kernel.NLL(r, in.scores[i*k:(i+1)*k], in.y[i], in.probs)
				settled, p := plainScaled(&r, v, in.scores[i*k:(i+1)*k], in.probs, cfg.normal().Bins)
				if in.probs { // LabelScaled settles the row by itself: it gets the kernel's
					kernel.ProbRows(raw, in.scores[i*k:(i+1)*k], k)
				} else {
					kernel.LogitRows(raw, nil, z, k, 1)
				}
				truth := Truth{in.y[i], nll, in.w[i], in.lag[i], in.served[i]}
				if err := errors.Join(one.Predict(settled, in.w[i]), one.LabelScaled(raw[0], v, z, truth),
					plain.Predict(settled, in.w[i])); err != nil {
					t.Fatal(err)
				}
				row, err := plain.checkLabel(&settled, truth)
				if err != nil {
					t.Fatal(err)
				}
				row.brier = kernel.Brier(raw[0], min(1, float64(v[in.y[i]])*raw[0].Scale))
				if err := plain.Labelled.add(&row, p, in.y[i]); err != nil {
					t.Fatal(err)
				}
			}
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			for len(rows) > 0 {
				n := min(len(rows), rng.IntN(100))
				if err := errors.Join(many.LabelRows(block, rows[:n]), many.PredictRows(block, rows[:n])); err != nil {
					t.Fatal(err)
				}
				rows = rows[n:]
			}
			what := fmt.Sprintf("K = %d, probabilities %v, weighted %v", k, in.probs, mode&2 == 2)
			if !bytes.Equal(encode(t, one), encode(t, plain)) {
				t.Errorf("%s: the scaled form differs from the float64 form", what)
			}
			if !bytes.Equal(encode(t, one), encode(t, many)) {
				t.Errorf("%s: the block differs from its rows", what)
			}
		}
	}
}

// TestBlockCells compares the vector path with cellOf, on and beside the edges of cells and in the tail.
func TestBlockCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var cs []float64
	for j := 0; j <= GridCells; j++ {
		e := edge(j)
		cs = append(cs, e, math.Nextafter(e, 2), math.Nextafter(e, -1), e+1e-13, e-1e-13, e+3e-13, e-3e-13, e+1.0/7200)
	}
	for i := 0; i <= tailCells; i++ {
		c := 1 - tailEdge(i)
		cs = append(cs, c, math.Nextafter(c, 2), math.Nextafter(c, 0))
	}
	for range 20000 {
		cs = append(cs, randConf(rng))
	}
	n := len(cs)
	padded := (n + 7) &^ 7
	x := newCelled(make([]float64, padded), nil, nil)
	w := make([]float64, padded)
	for i, c := range cs {
		x.c[i], w[i] = clamp(c), randWeight(rng)
		if i%100 == 0 {
			w[i] = 1 << 30
		}
	}
	x.find(w, true, n)
	for i, c := range x.c[:n] {
		wc := w[i] * c
		if want := uint16(2 * cellOf(c)); x.Key[i] != want || x.WC[i] != fix(wc) || x.WC2[i] != fix(wc*c) {
			t.Fatalf("%v of weight %v: got key %d, sums %d %d, want %d, %d %d", c, w[i], x.Key[i], x.WC[i], x.WC2[i],
				want, fix(wc), fix(wc*c))
		}
	}
}

// TestUnderflow: a label 160 nats below is a hit of bin 0, as in float64; one 2,000 nats below has probability 0.
func TestUnderflow(t *testing.T) {
	for _, f := range []struct {
		gap  float32
		bins int64 // rows of class 1 that are in bins
	}{{160, 1}, {700, 1}, {745, 1}, {746, 0}, {2000, 0}} {
		z := []float32{f.gap / 2, -f.gap / 2, f.gap/2 - 1}
		b, s, ref := NewBlock(3), must(New(Config{K: 3})), must(New(Config{K: 3}))
		b.Score(z, false)
		p := make([]float64, 3)
		r, _ := kernel.Logits(z, p)
		nll := kernel.NLL(r, z, 1, false)
		if err := errors.Join(b.SetRow(0, 1, 1, 1, math.NaN()), s.LabelRows(b, []int32{0}),
			ref.Label(r, p, Truth{1, nll, 1, 1, math.NaN()})); err != nil {
			t.Fatal(err)
		}
		got, want := s.Labelled.ClassWise.Bins(1), ref.Labelled.ClassWise.Bins(1)
		if got[0] != want[0] || got[0].N != f.bins || got[0].SumA != 1 && f.bins == 1 {
			t.Errorf("gap %v: got %+v, want %+v", f.gap, got[0], want[0])
		}
	}
}

func TestBlockErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	in := randBlock(rng, 10, 50, false, true)
	b, s := NewBlock(10), must(New(Config{K: 10}))
	rows := in.load(t, b)
	if err := errors.Join(s.LabelRows(b, rows), s.PredictRows(b, rows)); err != nil {
		t.Fatal(err)
	}
	want := encode(t, s)
	check := func(what string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("%s: got %v, want %v", what, err, is)
		}
		if !bytes.Equal(encode(t, s), want) {
			t.Fatalf("%s changed the set", what)
		}
	}
	check("other K", s.LabelRows(NewBlock(11), nil), ErrShape)
	check("other K of predictions", s.PredictRows(NewBlock(11), nil), ErrShape)
	for _, v := range []float32{float32(math.NaN()), -1e-9, 1e9, float32(math.Inf(1))} {
		in.load(t, b)
		b.row(40)[3] = v
		check(fmt.Sprintf("value %v", v), s.LabelRows(b, rows), ErrValue)
	}
	in.load(t, b)
	for i, f := range []struct {
		y      int
		w      float64
		served float64
	}{{10, 1, .5}, {0, 0, .5}, {0, math.NaN(), .5}, {0, 1 << 31, .5}, {0, 1, 1.5}} {
		if err := b.SetRow(i, f.y, f.w, 1, f.served); !errors.Is(err, ErrValue) {
			t.Errorf("row %+v: got %v, want ErrValue", f, err)
		}
	}
	in.load(t, b)
	for i := range 3 {
		if err := b.SetRow(i, 0, 1<<30, 1, math.NaN()); err != nil {
			t.Fatal(err)
		}
	}
	check("overflow", s.LabelRows(b, rows), ErrOverflow)
	check("overflow of predictions", s.PredictRows(b, rows), ErrOverflow)
}

func TestBlockAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, k := range []int{10, 200} {
		in := randBlock(rng, k, 300, false, false)
		b, s := NewBlock(k), must(New(Config{K: k}))
		rows := in.load(t, b)
		all := func() {
			s.Reset()
			for i := range rows {
				if err := b.SetRow(i, in.y[i], in.w[i], in.lag[i], in.served[i]); err != nil {
					t.Fatal(err)
				}
			}
			if s.LabelRows(b, rows) != nil || s.PredictRows(b, rows) != nil {
				t.Fatal("a block is refused")
			}
		}
		all()
		if got := testing.AllocsPerRun(5, all); got != 0 {
			t.Errorf("K = %d: got %v allocations in a warm block, want 0", k, got)
		}
	}
}

// TestSoftWeights: a row's memberships are those of the metric to a unit of rounding and the bound that SoftBins
// states.
func TestSoftWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, f := range []struct {
		m int
		t float64
	}{{15, .01}, {15, .0031}, {100, .0031}, {10, 1}, {16, .005}, {3, .1}} {
		u := make([]float64, f.m)
		for range 300 {
			b, c := must(NewSoftBins(f.m, f.t)), randConf(rng)
			if b.gauss == nil {
				t.Fatalf("%+v is not worked out by powers", f)
			}
			if err := b.Add(c, 1, true); err != nil {
				t.Fatal(err)
			}
			metric.SoftWeights(u, c, f.t)
			for j, got := range b.Sums().S {
				near(t, "u", got, u[j], 0x1p-33+u[j]*0x1p-40)
			}
		}
	}
}
