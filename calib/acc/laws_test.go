package acc

import (
	"bytes"
	"encoding"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
)

type accumulator[T any] interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
	Merge(T) error
	Clone() T
	Reset()
}

func encode[T accumulator[T]](t testing.TB, a T) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustMerge[T accumulator[T]](t testing.TB, a T, others ...T) T {
	t.Helper()
	for _, o := range others {
		before := encode(t, o)
		if err := a.Merge(o); err != nil {
			t.Fatal(err)
		}
		if any(a) != any(o) && !bytes.Equal(before, encode(t, o)) {
			t.Fatal("merge changed its argument")
		}
	}
	return a
}

// testLaws checks the monoid laws in bytes: mk makes an empty accumulator, row draws a row and returns its adder.
func testLaws[T accumulator[T]](t *testing.T, mk func() T, row func(*rand.Rand) func(T) error) {
	t.Helper()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := make([]func(T) error, rng.IntN(300))
		for i := range rows {
			rows[i] = row(rng)
			if i > 0 && rng.IntN(10) == 0 {
				rows[i] = rows[i-1] // equal rows count twice
			}
		}
		add := func(a T, rows []func(T) error) T {
			for _, f := range rows {
				if err := f(a); err != nil {
					t.Fatal(err)
				}
			}
			return a
		}
		want := encode(t, add(mk(), rows))
		check := func(law string, a T) {
			t.Helper()
			if got := encode(t, a); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, %s: %d bytes differ from %d", seed, law, len(got), len(want))
			}
		}
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		parts := []T{mk(), mk(), mk()}
		for _, f := range rows {
			add(parts[rng.IntN(3)], []func(T) error{f})
		}
		a, b, c := parts[0], parts[1], parts[2]
		check("(a+b)+c", mustMerge(t, mustMerge(t, a.Clone(), b), c))
		check("a+(b+c)", mustMerge(t, a.Clone(), mustMerge(t, b.Clone(), c)))
		check("c+b+a", mustMerge(t, c.Clone(), b, a))
		all := mustMerge(t, a.Clone(), b, c)
		check("x+0", mustMerge(t, all.Clone(), mk()))
		check("0+x", mustMerge(t, mk(), all))
		twice := mustMerge(t, all.Clone(), all)
		self := all.Clone()
		mustMerge(t, self, self)
		if !bytes.Equal(encode(t, twice), encode(t, self)) {
			t.Fatalf("seed %d: merging with itself differs from merging with a copy", seed)
		}
		check("the argument after x+x", all)

		back := mk()
		if err := back.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		check("decode(encode(x))", back)
		rest := mk()
		if err := rest.UnmarshalBinary(encode(t, a)); err != nil {
			t.Fatal(err)
		}
		check("decoded, then merged", mustMerge(t, rest, b, c))
		back.Reset()
		if !bytes.Equal(encode(t, back), encode(t, mk())) {
			t.Fatalf("seed %d: a reset accumulator differs from an empty one", seed)
		}
		check("reset and reused", add(back, rows))
	}
}

// testShape checks that merging accumulators of different configuration is refused and changes neither.
func testShape[T accumulator[T]](t *testing.T, a T, others ...T) {
	t.Helper()
	for i, o := range others {
		before, other := encode(t, a), encode(t, o)
		if err := a.Merge(o); !errors.Is(err, ErrShape) {
			t.Errorf("other %d: got %v, want ErrShape", i, err)
		}
		if !bytes.Equal(before, encode(t, a)) || !bytes.Equal(other, encode(t, o)) {
			t.Errorf("other %d: a refused merge changed something", i)
		}
	}
}

// randWeight is 1 three times in four.
func randWeight(rng *rand.Rand) float64 {
	if rng.IntN(4) > 0 {
		return 1
	}
	return math.Exp(rng.NormFloat64() * 3)
}

// randConf draws confidences of all kinds: on edges, between, in the tail, at the ends.
func randConf(rng *rand.Rand) float64 {
	switch rng.IntN(6) {
	case 0:
		return float64(rng.IntN(GridCells+1)) / GridCells
	case 1:
		return 1 - math.Ldexp(rng.Float64(), -rng.IntN(54))
	case 2:
		return float64(rng.IntN(2))
	case 3:
		return math.Nextafter(float64(rng.IntN(16))/15, float64(rng.IntN(2)))
	}
	return rng.Float64()
}

// randRow draws a softmax row as the kernel would deliver it.
func randRow(rng *rand.Rand, k int) (r kernel.Row, p []float64, z []float32) {
	p, z = make([]float64, k), make([]float32, k)
	scale := math.Exp(rng.NormFloat64())
	for i := range z {
		z[i] = float32(rng.NormFloat64() * 3 * scale)
	}
	r.Max = math.Inf(-1)
	for i, v := range z {
		if float64(v) > r.Max {
			r.Max, r.Arg = float64(v), i
		}
	}
	sum := 0.0
	for i, v := range z {
		p[i] = math.Exp(float64(v) - r.Max)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
		r.SumP2 += p[i] * p[i]
		if p[i] > 0 {
			r.Entropy -= p[i] * math.Log(p[i])
		}
		if i != r.Arg {
			r.Second = max(r.Second, p[i])
		}
	}
	r.Conf = p[r.Arg]
	r.LSE = r.Max + math.Log(sum)
	return r, p, z
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newGrid() *Grid       { return &Grid{} }
func newSoft() *SoftBins   { return must(NewSoftBins(15, 0.01)) }
func newClass() *ClassWise { return must(NewClassWise(7, 15)) }
func newScores() *Scores   { return &Scores{} }
func newLag() *Lag         { return &Lag{} }
func newSample() *Sample   { return must(NewSample(3, 20, 5)) }
func newSet() *Set         { return must(New(testConfig)) }

var testConfig = Config{K: 5, SampleRows: 10, SampleSeed: 9}

func gridRow(rng *rand.Rand) func(*Grid) error {
	c, w, a := randConf(rng), randWeight(rng), rng.IntN(2) == 0
	return func(g *Grid) error { return g.Add(c, w, a) }
}

func softRow(rng *rand.Rand) func(*SoftBins) error {
	c, w, a := randConf(rng), randWeight(rng), rng.IntN(2) == 0
	return func(b *SoftBins) error { return b.Add(c, w, a) }
}

// sparsify puts exact zeros and ones into some rows.
func sparsify(rng *rand.Rand, p []float64) {
	switch rng.IntN(8) {
	case 0:
		p[rng.IntN(len(p))] = 0
	case 1:
		clear(p)
		p[rng.IntN(len(p))] = 1
	}
}

func classRow(rng *rand.Rand) func(*ClassWise) error {
	_, p, _ := randRow(rng, 7)
	sparsify(rng, p)
	y, w := rng.IntN(7), randWeight(rng)
	return func(c *ClassWise) error { return c.Add(p, y, w) }
}

func scoresRow(rng *rand.Rand) func(*Scores) error {
	nll, brier, c, w, correct := rng.ExpFloat64(), 2*rng.Float64(), rng.Float64(), randWeight(rng), rng.IntN(2) == 0
	if rng.IntN(20) == 0 {
		nll = math.Inf(1)
	}
	if rng.IntN(20) == 0 {
		nll = -1e-7
	}
	return func(s *Scores) error { return s.Add(nll, brier, c, w, correct) }
}

func lagRow(rng *rand.Rand) func(*Lag) error {
	v := int64(rng.Uint64() >> rng.IntN(64))
	return func(l *Lag) error { return l.Add(v) }
}

func randSample(rng *rand.Rand, k int) SampleRow {
	r := SampleRow{TS: rng.Int64N(3), LabelTS: int64(rng.Uint64()), W: float32(randWeight(rng)), Y: int32(rng.IntN(k)),
		Z: make([]float32, k)}
	r.ID[3] = byte(rng.IntN(40)) // equal IDs are common
	for i := range r.Z {
		r.Z[i] = float32(rng.NormFloat64())
	}
	if rng.IntN(10) == 0 {
		r.Z[0] = float32(math.NaN())
	}
	return r
}

func sampleRow(rng *rand.Rand) func(*Sample) error {
	r := randSample(rng, 3)
	return func(s *Sample) error { return s.Add(r) }
}

func setRow(rng *rand.Rand) func(*Set) error {
	k := testConfig.K
	r, p, _ := randRow(rng, k)
	w, y, lag, served, row := randWeight(rng), rng.IntN(k), rng.Int64N(1e12)-1e9, math.NaN(), randSample(rng, k)
	if rng.IntN(2) == 0 {
		served = randConf(rng)
	}
	kind := rng.IntN(4)
	return func(s *Set) error {
		if kind == 0 {
			return s.Predict(r, w)
		}
		if kind == 1 {
			if err := s.AddSample(row); err != nil {
				return err
			}
		}
		return s.Label(r, p, Truth{y, -math.Log(p[y]), w, lag, served})
	}
}

func TestLaws(t *testing.T) {
	t.Run("Grid", func(t *testing.T) { testLaws(t, newGrid, gridRow) })
	t.Run("SoftBins", func(t *testing.T) { testLaws(t, newSoft, softRow) })
	t.Run("ClassWise", func(t *testing.T) { testLaws(t, newClass, classRow) })
	t.Run("Scores", func(t *testing.T) { testLaws(t, newScores, scoresRow) })
	t.Run("Lag", func(t *testing.T) { testLaws(t, newLag, lagRow) })
	t.Run("Sample", func(t *testing.T) { testLaws(t, newSample, sampleRow) })
	t.Run("Set", func(t *testing.T) { testLaws(t, newSet, setRow) })
	t.Run("Seen", func(t *testing.T) {
		testLaws(t, func() *Seen { return &Seen{} }, func(rng *rand.Rand) func(*Seen) error {
			f, w := confidences{randConf(rng), randConf(rng), randConf(rng)}, randWeight(rng)
			return func(s *Seen) error { return s.add(f, w) }
		})
	})
	t.Run("Labelled", func(t *testing.T) {
		testLaws(t, func() *Labelled { return must(newLabelled(testConfig.normal())) },
			func(rng *rand.Rand) func(*Labelled) error {
				r, p, _ := randRow(rng, testConfig.K)
				f, w := confidences{r.Conf, randConf(rng), randConf(rng)}, randWeight(rng)
				row := labelRow{f, 1, 1, w, fix(w), 5, 0.5, r.Arg == 1}
				sampled := randSample(rng, testConfig.K)
				return func(l *Labelled) error {
					if err := l.Sample.Add(sampled); err != nil {
						return err
					}
					return l.add(&row, p, 1)
				}
			})
	})
}

func TestShape(t *testing.T) {
	fill := func(s *Set) *Set {
		r, p, z := randRow(rand.New(rand.NewPCG(1, 1)), s.cfg.K)
		if err := errors.Join(s.Predict(r, 1), s.Label(r, p, Truth{0, 1, 1, 1, 1}),
			s.AddSample(SampleRow{Z: z})); err != nil {
			t.Fatal(err)
		}
		return s
	}
	with := func(f func(*Config)) *Set {
		cfg := testConfig
		f(&cfg)
		return fill(must(New(cfg)))
	}
	base := fill(newSet())
	others := []*Set{
		with(func(c *Config) { c.K = 6 }), with(func(c *Config) { c.Bins = 10 }),
		with(func(c *Config) { c.SoftBins = 10 }),
		with(func(c *Config) { c.SoftTemperature = 1 }), with(func(c *Config) { c.SampleSeed++ }),
	}
	testShape(t, base, others...)
	for _, o := range others {
		testShape(t, base.Labelled, o.Labelled)
	}
	testShape(t, base.Labelled.Soft, others[2].Labelled.Soft, others[3].Labelled.Soft)
	testShape(t, base.Labelled.ClassWise, others[0].Labelled.ClassWise, others[1].Labelled.ClassWise)
	testShape(t, base.Labelled.Sample, others[0].Labelled.Sample, others[4].Labelled.Sample)
}

// TestCapacities: sets whose samples have several capacities merge to that of the smallest, in any order.
func TestCapacities(t *testing.T) {
	var want []byte
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		rng := rand.New(rand.NewPCG(6, 8))
		parts, all := make([]*Set, 3), must(NewSample(testConfig.K, 4, testConfig.SampleSeed))
		for i, capacity := range []int{10, 4, 7} {
			cfg := testConfig
			cfg.SampleRows = capacity
			parts[i] = must(New(cfg))
			for range 30 {
				row := randSample(rng, testConfig.K)
				if err := errors.Join(parts[i].AddSample(row), all.Add(row)); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := parts[order[0]]
		for _, i := range order[1:] {
			before := encode(t, parts[i])
			if err := got.Merge(parts[i]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encode(t, parts[i]), before) {
				t.Errorf("%v: a merge changed the other set", order)
			}
		}
		if !bytes.Equal(encode(t, got.Labelled.Sample), encode(t, all)) {
			t.Errorf("%v: the sample is not the four rows of least hash", order)
		}
		if want == nil {
			want = encode(t, got)
		}
		if !bytes.Equal(encode(t, got), want) {
			t.Errorf("%v: other bytes than in the first order", order)
		}
	}
}

func TestOverflow(t *testing.T) {
	const w = 1<<31 - 1
	s := newSet()
	r, p, _ := randRow(rand.New(rand.NewPCG(1, 1)), testConfig.K)
	add := func() error { return errors.Join(s.Predict(r, w), s.Label(r, p, Truth{0, 1, w, 1, 1})) }
	if err := add(); err != nil {
		t.Fatal(err)
	}
	want := encode(t, s)
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrOverflow) {
			t.Errorf("%s: got %v, want ErrOverflow", what, err)
		}
		if !bytes.Equal(encode(t, s), want) {
			t.Errorf("%s changed the state", what)
		}
	}
	check("predict", s.Predict(r, w))
	check("label", s.Label(r, p, Truth{0, 1, w, 1, 1}))
	check("merge", s.Merge(s.Clone()))
	check("merge of labelled", s.Labelled.Merge(s.Labelled.Clone()))
	check("merge of seen", s.Seen.Merge(s.Seen.Clone()))
	check("merge of a grid", s.Seen.MSP.Merge(s.Seen.MSP.Clone()))
	check("merge of soft bins", s.Labelled.Soft.Merge(s.Labelled.Soft.Clone()))
	check("merge of class-wise bins", s.Labelled.ClassWise.Merge(s.Labelled.ClassWise.Clone()))
	check("merge of scores", s.Labelled.Scores.Merge(s.Labelled.Scores.Clone()))
	check("add to a grid", s.Seen.MSP.Add(1, w, false))
	check("add to scores", s.Labelled.Scores.Add(1, 1, 1, w, false))

	l := Lag{n: 1, sum: i128{math.MaxInt64, math.MaxUint64}}
	if err := l.Add(1); !errors.Is(err, ErrOverflow) || l.n != 1 {
		t.Errorf("lag: got %v, n = %d", err, l.n)
	}
}

func TestRejectedRows(t *testing.T) {
	nan := math.NaN()
	r, p, _ := randRow(rand.New(rand.NewPCG(1, 1)), testConfig.K)
	s := newSet()
	if err := s.Label(r, p, Truth{0, 1, 1, 1, nan}); err != nil {
		t.Fatal(err)
	}
	want := encode(t, s)
	f := func(name string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("%s: got %v, want %v", name, err, is)
		}
		if !bytes.Equal(encode(t, s), want) {
			t.Errorf("%s changed the state", name)
		}
	}
	for _, w := range []float64{0, -1, nan, math.Inf(1), 1 << 31} {
		f("weight", s.Label(r, p, Truth{0, 1, w, 1, nan}), ErrValue)
		f("weight of a prediction", s.Predict(r, w), ErrValue)
	}
	f("label", s.Label(r, p, Truth{5, 1, 1, 1, nan}), ErrValue)
	f("negative label", s.Label(r, p, Truth{-1, 1, 1, 1, nan}), ErrValue)
	f("nll", s.Label(r, p, Truth{0, nan, 1, 1, nan}), ErrValue)
	f("served", s.Label(r, p, Truth{0, 1, 1, 1, 1.5}), ErrValue)
	f("too few probabilities", s.Label(r, p[1:], Truth{0, 1, 1, 1, nan}), ErrShape)
	f("probability", s.Label(r, []float64{.5, .5, nan, 0, 0}, Truth{0, 1, 1, 1, nan}), ErrValue)
	if err := s.Clone().Label(r, []float64{1, math.Copysign(0, -1), 0, 0, 0}, Truth{0, 1, 1, 1, nan}); err != nil {
		t.Errorf("probability -0: %v", err)
	}
	f("negative probability", s.Label(r, []float64{.5, .5, -.1, .1, 0}, Truth{0, 1, 1, 1, nan}), ErrValue)
	f("sample", s.AddSample(SampleRow{Z: make([]float32, 4)}), ErrShape)
	bad := r
	bad.Entropy = nan
	f("entropy", s.Predict(bad, 1), ErrValue)
	for _, c := range []float64{-1e-300, 1.1, nan} {
		f("confidence", (&Grid{}).Add(c, 1, true), ErrValue)
		f("soft", newSoft().Add(c, 1, true), ErrValue)
	}
	for _, cfg := range []Config{
		{}, {K: 1}, {K: MaxClasses + 1}, {K: 2, Bins: -1}, {K: 2, Bins: 3601},
		{K: 2, SoftBins: -1}, {K: 2, SoftTemperature: -1}, {K: 2, SoftTemperature: nan}, {K: 2, SampleRows: -1},
	} {
		if _, err := New(cfg); !errors.Is(err, ErrShape) {
			t.Errorf("New(%+v): got %v, want ErrShape", cfg, err)
		}
	}
}
