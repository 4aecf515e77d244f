package acc

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// Means are off by at most 2^-33 a row from rounding to fixed point; the rest is room for float64 sums.
const fixTol = 2e-10

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: got %v, want %v ± %g", what, got, want, tol)
	}
}

// obs is one row of the plain references.
type obs struct {
	c, w float64
	a    bool
}

func (o obs) hit() float64 {
	if o.a {
		return 1
	}
	return 0
}

func randObs(rng *rand.Rand, n int, weighted bool) []obs {
	rows := make([]obs, n)
	for i := range rows {
		rows[i] = obs{randConf(rng), 1, rng.IntN(3) > 0}
		if weighted {
			rows[i].w = randWeight(rng)
		}
	}
	return rows
}

func gridOf(t *testing.T, rows []obs) *Grid {
	t.Helper()
	var g Grid
	for _, o := range rows {
		if err := g.Add(o.c, o.w, o.a); err != nil {
			t.Fatal(err)
		}
	}
	return &g
}

// TestCellOf compares with a search over all edges, on and beside every edge, and checks that order is kept.
func TestCellOf(t *testing.T) {
	slow := func(c float64) int {
		j := sort.Search(GridCells+1, func(j int) bool { return float64(j)/GridCells >= c })
		switch {
		case float64(j)/GridCells == c:
			return pointCell(j)
		case j == GridCells:
			i := 0
			for i < tailCells-1 && 1-c <= tailEdge(i+1) {
				i++
			}
			return tailFirst + i
		}
		return 2*(j-1) + 1
	}
	var cs []float64
	for j := 0; j <= GridCells; j++ {
		e := float64(j) / GridCells
		cs = append(cs, e, math.Nextafter(e, 2), math.Nextafter(e, -1), e+1e-13, e-1e-13, e+3e-9, e-3e-9, e+1.0/7200)
	}
	for i := 0; i <= tailCells; i++ {
		c := 1 - tailEdge(i)
		cs = append(cs, c, math.Nextafter(c, 2), math.Nextafter(c, 0))
	}
	cs = append(cs, 5e-324, math.Copysign(0, -1), 1-0x1p-53)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		cs = append(cs, randConf(rng))
	}
	cs = slices.DeleteFunc(cs, func(c float64) bool { return c < 0 || c > 1 })
	slices.Sort(cs)
	last := 0
	for _, c := range cs {
		got := cellOf(c)
		if want := slow(c); got != want {
			t.Fatalf("cell of %v: got %d, want %d", c, got, want)
		}
		if got < last {
			t.Fatalf("cell of %v is %d, after %d", c, got, last)
		}
		last = got
		if lo, hi := cellBounds(got); c < lo || c > hi {
			t.Fatalf("%v is in cell %d = [%v, %v]", c, got, lo, hi)
		}
	}
	if last != cellCount-1 {
		t.Errorf("last cell %d, want %d", last, cellCount-1)
	}
}

func TestGridBins(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		rows := randObs(rand.New(rand.NewPCG(3, 4)), 5000, weighted)
		g := gridOf(t, rows)
		for _, m := range []int{1, 10, 15, 16, 100, 3600} {
			want, wantCDF := make([]metric.Bin, m), make([]float64, m)
			for _, o := range rows {
				i := 0
				for i < m-1 && o.c > float64(i+1)/float64(m) {
					i++
				}
				want[i].N++
				want[i].W += o.w
				want[i].SumC += o.w * o.c
				want[i].SumA += o.w * o.hit()
				i = m - 1
				for i > 0 && o.c < float64(i)/float64(m) {
					i--
				}
				wantCDF[i] += o.w
			}
			got, err := g.Bins(m)
			if err != nil {
				t.Fatal(err)
			}
			cdf := must(g.CDFCounts(m))
			wrong, correct, err := g.BinsByOutcome(m)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range want {
				if got[i].N != b.N || wrong[i].N+correct[i].N != b.N || wrong[i].SumA != 0 ||
					correct[i].SumA != correct[i].W {
					t.Fatalf("m = %d, bin %d: got %+v, want %+v", m, i, got[i], b)
				}
				tol := fixTol * float64(len(rows))
				near(t, "W", got[i].W, b.W, tol)
				near(t, "SumC", got[i].SumC, b.SumC, tol)
				near(t, "SumA", got[i].SumA, b.SumA, tol)
				near(t, "CDF count", cdf[i], wantCDF[i], tol)
				near(t, "correct W", correct[i].W, b.SumA, tol)
				near(t, "parts of SumC", wrong[i].SumC+correct[i].SumC, b.SumC, tol)
			}
		}
	}
	for _, m := range []int{0, -1, 7, 7200} {
		if _, err := new(Grid).Bins(m); err == nil {
			t.Errorf("Bins(%d): got no error", m)
		}
		if _, err := new(Grid).CDFCounts(m); err == nil {
			t.Errorf("CDFCounts(%d): got no error", m)
		}
	}
}

// slowAURC computes Σ_r (H_n - H_{n-r}) e_r / n over ascending ranks r from rows, those of one key with their mean
// weight.
func slowAURC(rows []obs, key func(float64) float64) (aurc float64) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b obs) int { return cmp.Compare(key(a.c), key(b.c)) })
	n := len(rows)
	h := make([]float64, n+1)
	for i := 1; i <= n; i++ {
		h[i] = h[i-1] + 1/float64(i)
	}
	for i := 0; i < n; {
		j, weight, errs := i, 0.0, 0.0
		for ; j < n && key(rows[j].c) == key(rows[i].c); j++ {
			weight += h[n] - h[n-j-1]
			errs += 1 - rows[j].hit()
		}
		aurc += weight / float64(j-i) * errs
		i = j
	}
	return aurc / float64(n)
}

func TestGridRank(t *testing.T) {
	byCell := func(c float64) float64 { return float64(cellOf(c)) }
	itself := func(c float64) float64 { return c }
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 9))
		for _, n := range []int{2, 10, 1500} {
			rows := randObs(rng, n, false)
			rows[0].a, rows[1].a = true, false
			g := gridOf(t, rows)
			near(t, "AURC", g.AURC(), slowAURC(rows, byCell), 1e-12)
			// One cell is the resolution: the statistic of the rows themselves is near.
			near(t, "AURC of rows", g.AURC(), slowAURC(rows, itself), .01)
			acc, conf := 0.0, 0.0
			for _, o := range rows {
				acc += o.hit() / float64(n)
				conf += o.c / float64(n)
			}
			near(t, "accuracy", g.Accuracy(), acc, 1e-12)
			near(t, "mean confidence", g.MeanConfidence(), conf, fixTol)
		}
	}
	for _, v := range []float64{new(Grid).AURC(), new(Grid).Accuracy(), new(Grid).MeanConfidence()} {
		if !math.IsNaN(v) {
			t.Errorf("empty grid: got %v, want NaN", v)
		}
	}
}

// TestGridRankWeighted: a row of weight 3 counts as three rows of weight 1.
func TestGridRankWeighted(t *testing.T) {
	rows := randObs(rand.New(rand.NewPCG(1, 9)), 300, false)
	var heavy, many []obs
	for i, o := range rows {
		for range i%3 + 1 {
			many = append(many, o)
		}
		o.w = float64(i%3 + 1)
		heavy = append(heavy, o)
	}
	near(t, "AURC", gridOf(t, heavy).AURC(), gridOf(t, many).AURC(), 1e-12)
}

func TestSoftBins(t *testing.T) {
	for _, cfg := range []struct {
		m int
		t float64
	}{{15, .01}, {15, 1e-4}, {100, .01}, {10, 10}, {1, .01}, {3600, 1e-9}, {20, 1e9}} {
		rows := randObs(rand.New(rand.NewPCG(5, 6)), 200, true)
		b := must(NewSoftBins(cfg.m, cfg.t))
		want := metric.SoftSums{S: make([]float64, cfg.m), UC: make([]float64, cfg.m), UA: make([]float64, cfg.m),
			UC2: make([]float64, cfg.m)}
		for _, o := range rows {
			if err := b.Add(o.c, o.w, o.a); err != nil {
				t.Fatal(err)
			}
			want.W += o.w
			for j, u := range softmaxWeights(o.c, cfg.m, cfg.t) {
				want.S[j] += o.w * u
				want.UC[j] += o.w * u * o.c
				want.UA[j] += o.w * u * o.hit()
				want.UC2[j] += o.w * u * o.c * o.c
			}
		}
		got := b.Sums()
		// A relative error of T and a few ulps of c matter at extreme T: (c-ξ)·ulp/T.
		tol := fixTol*float64(len(rows)) + 1e-15/cfg.t*want.W
		near(t, "W", got.W, want.W, tol)
		for j := range cfg.m {
			near(t, "S", got.S[j], want.S[j], tol)
			near(t, "UC", got.UC[j], want.UC[j], tol)
			near(t, "UA", got.UA[j], want.UA[j], tol)
			near(t, "UC2", got.UC2[j], want.UC2[j], tol)
		}
	}
}

// softmaxWeights is Eq. 8 as printed, the maximum taken off.
func softmaxWeights(c float64, m int, temperature float64) []float64 {
	u, top, sum := make([]float64, m), math.Inf(-1), 0.0
	for j := range u {
		d := c - (float64(j)+.5)/float64(m)
		u[j] = -d * d / temperature
		top = max(top, u[j])
	}
	for j := range u {
		u[j] = math.Exp(u[j] - top)
		sum += u[j]
	}
	for j := range u {
		u[j] /= sum
	}
	return u
}

// TestClassWiseChance compares the bounds of chance with what calibrated rows show: they hold, and with two classes
// they are near.
func TestClassWiseChance(t *testing.T) {
	for _, tt := range []struct {
		k, n   int
		spread float64 // of scores
		near   float64 // the bound of the null is at most this much above it, as a share
	}{{2, 500, 2, .05}, {2, 2000, 6, .05}, {7, 500, 2, .1}} {
		const runs = 400
		rng := rand.New(rand.NewPCG(3, uint64(tt.k*tt.n)))
		var sum, square, null, sd float64
		for range runs {
			c := must(NewClassWise(tt.k, 15))
			for range tt.n {
				p, total := make([]float64, tt.k), 0.
				for i := range p {
					p[i] = math.Exp(tt.spread * rng.Float64())
					total += p[i]
				}
				u, y := rng.Float64(), tt.k-1
				for i := range p {
					p[i] /= total
					if u -= p[i]; u < 0 && i < y {
						y = i
					}
				}
				if err := c.Add(p, y, 1); err != nil {
					t.Fatal(err)
				}
			}
			value, _ := c.ECE()
			n, s := c.Chance()
			sum, square, null, sd = sum+value/runs, square+value*value/runs, null+n/runs, sd+s/runs
		}
		if spread := math.Sqrt(square - sum*sum); null < .98*sum || null > (1+tt.near)*sum || sd < spread {
			t.Errorf("K=%d, %d rows: null %.5f, sd %.5f; calibrated rows show %.5f ± %.5f", tt.k, tt.n, null, sd, sum,
				spread)
		}
	}
	if null, sd := newClass().Chance(); !math.IsNaN(null) || !math.IsNaN(sd) {
		t.Errorf("empty: got %v, %v, want NaN", null, sd)
	}
}

// TestBinomialDeviation compares the closed form with the sum that it stands for.
func TestBinomialDeviation(t *testing.T) {
	for _, x := range []struct{ n, p float64 }{{1, .3}, {10, .5}, {10, .01}, {50, .99}, {2000, .003},
		{7, 0}, {7, 1}} {
		row := []float64{1} // the chances of 0, 1, … hits, one row more at a time
		for range int(x.n) {
			next := make([]float64, len(row)+1)
			for k, q := range row {
				next[k] += q * (1 - x.p)
				next[k+1] += q * x.p
			}
			row = next
		}
		var want float64
		for k, q := range row {
			want += q * math.Abs(float64(k)-x.n*x.p)
		}
		near(t, fmt.Sprint("deviation of ", x), binomialDeviation(x.n, x.p), want, 1e-9)
	}
}

func TestClassWise(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		const k, m, n = 7, 15, 400
		rng := rand.New(rand.NewPCG(7, 8))
		c := newClass()
		var want [k][m]metric.Bin
		total := 0.0
		for range n {
			_, p, _ := randRow(rng, k)
			sparsify(rng, p)
			if rng.IntN(5) == 0 {
				p[0] = float64(rng.IntN(m+1)) / m // on an edge
			}
			y, w := rng.IntN(k), 1.0
			if weighted {
				w = randWeight(rng)
			}
			if err := c.Add(p, y, w); err != nil {
				t.Fatal(err)
			}
			total += w
			for class, v := range p {
				for i := range m {
					if v > float64(i)/m && v <= float64(i+1)/m {
						b := &want[class][i]
						b.N++
						b.W += w
						b.SumC += w * v
						if class == y {
							b.SumA += w
						}
					}
				}
			}
		}
		var l1, l2 float64
		for class := range k {
			for i, b := range c.Bins(class) {
				wb := want[class][i]
				if b.N != wb.N {
					t.Fatalf("class %d bin %d: got %d rows, want %d", class, i, b.N, wb.N)
				}
				near(t, "W", b.W, wb.W, n*fixTol)
				near(t, "SumC", b.SumC, wb.SumC, n*fixTol)
				near(t, "SumA", b.SumA, wb.SumA, n*fixTol)
				if wb.N > 0 {
					gap := (wb.SumC - wb.SumA) / wb.W
					l1 += math.Abs(gap) * wb.W / total / k
					l2 += gap * gap * wb.W / total / k
				}
			}
		}
		got1, got2 := c.ECE()
		near(t, "cwece", got1, l1, 1e-9)
		near(t, "cwece_l2", got2, math.Sqrt(l2), 1e-9)
	}
	if a, b := newClass().ECE(); !math.IsNaN(a) || !math.IsNaN(b) {
		t.Errorf("empty: got %v, %v, want NaN", a, b)
	}
}

func TestScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var s Scores
	var w, w2, nll, brier, a, c float64
	for range 1000 {
		o := obs{rng.Float64(), randWeight(rng), rng.IntN(2) == 0}
		l, b := rng.NormFloat64()*100, 2*rng.Float64()
		if err := s.Add(l, b, o.c, o.w, o.a); err != nil {
			t.Fatal(err)
		}
		w, w2, nll, brier = w+o.w, w2+o.w*o.w, nll+o.w*l, brier+o.w*b
		a, c = a+o.w*o.hit(), c+o.w*o.c
	}
	near(t, "nll", s.NLL(), nll/w, 1e-9)
	near(t, "brier", s.Brier(), brier/w, 1e-9)
	near(t, "accuracy", s.Accuracy(), a/w, 1e-9)
	near(t, "confidence", s.MeanConfidence(), c/w, 1e-9)
	near(t, "effective n", s.EffectiveN(), w*w/w2, 1e-6)
	if err := s.Add(math.Inf(1), 2, 1, 1, false); err != nil {
		t.Fatal(err)
	}
	near(t, "saturated nll", s.NLL()/(saturation/(w+1)), 1, 1e-9)
}

func TestLag(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	var l Lag
	var all []float64
	sum := 0.0
	for i := range 3000 {
		v := int64(math.Exp(rng.NormFloat64()*4) * 1e9)
		if i%50 == 0 {
			v = -v
		}
		if err := l.Add(v); err != nil {
			t.Fatal(err)
		}
		all = append(all, float64(v)*1e-9)
		sum += float64(v) * 1e-9
	}
	near(t, "mean", l.Mean()/(sum/3000), 1, 1e-9)
	slices.Sort(all)
	for _, q := range []float64{0.001, .1, .5, .9, .99, 1} {
		want := max(0, all[int(math.Ceil(q*3000))-1])
		got := l.Quantile(q)
		if cell := math.Pow(2, .25); got < want/cell-1e-3 || got > want*cell+1e-3 {
			t.Errorf("quantile %v: got %v, want %v to a cell", q, got, want)
		}
	}
	for i := lagFirst; i < lagCells; i++ {
		e := int64(math.Ceil(lagEdge(i) * 1e9))
		if e < 0 || lagEdge(i)*1e9 >= 1<<62 {
			break
		}
		// Away from the edge by more than float64 rounds.
		if d := max(1, e>>50); lagCell(e+d) != i || lagCell(e-d-1) != i-1 {
			t.Fatalf("edge %d ns of cell %d: cells %d and %d", e, i, lagCell(e-d-1), lagCell(e+d))
		}
	}
	var lags []int64 // on both sides of every edge
	for i := lagFirst; i < lagCells; i++ {
		e := int64(math.Ceil(lagEdge(i) * 1e9))
		lags = append(lags, e-2, e-1, e, e+1, e+2, e+e/9)
	}
	lags = append(lags, math.MinInt64, -1, 0, 1, lagUnit-1, lagUnit, lagExact-1, lagExact, math.MaxInt64)
	cells := make([]uint16, len(lags))
	lagCellsOf(cells, lags)
	for i, nanos := range lags {
		want := min(1, max(0, nanos))
		if nanos >= lagUnit {
			want = int64(longLagCell(nanos))
		}
		if got := lagCell(nanos); got != int(want) || cells[i] != uint16(want) {
			t.Errorf("lag of %d ns: cell %d, among many %d, want %d", nanos, got, cells[i], want)
		}
	}
	if lagCell(math.MaxInt64) >= lagCells || lagCell(math.MinInt64) != 0 {
		t.Error("extreme lags have no cell")
	}
}

// TestSample compares with sorting all rows.
func TestSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	s := must(NewSample(2, 50, 77))
	type row struct {
		hash uint64
		ts   int64
	}
	var all []row
	for i := range 2000 {
		var id [16]byte
		id[0], id[9] = byte(i), byte(i>>8)
		r := SampleRow{ID: id, TS: int64(i), Z: []float32{float32(i), rng.Float32()}}
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
		r.Z[0] = -1 // the sample has its own copy
		all = append(all, row{SampleHash(id, 77), int64(i)})
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Compare(a.hash, b.hash) })
	got := s.Rows()
	if len(got) != 50 {
		t.Fatalf("got %d rows, want 50", len(got))
	}
	for i, r := range got {
		if r.TS != all[i].ts || r.Z[0] != float32(r.TS) {
			t.Fatalf("row %d: got ts %d z %v, want %d", i, r.TS, r.Z, all[i].ts)
		}
	}
	for _, f := range []struct{ rows, bytes, want int }{{64, 400, 10}, {64, 1, 1}, {64, 0, 64}, {0, 400, 0},
		{5, 400, 5}} {
		if got := must(New(Config{K: 10, SampleRows: f.rows,
			SampleBytes: f.bytes})).Settings().SampleRows; got != f.want {
			t.Errorf("%d rows in %d bytes: got %d, want %d", f.rows, f.bytes, got, f.want)
		}
	}
}

func TestFixed(t *testing.T) {
	for _, x := range []float64{0, 1, .1, 1.0 / 3, 0x1p-33, 3 * 0x1p-33, 0x1p-34, 1<<19 - 0x1p-33, 1 << 19, 1<<31 - 1,
		1<<19 - 0x1p-34} {
		if got, want := fix(x), int64(math.RoundToEven(x*fixOne)); got != want {
			t.Errorf("fix(%v): got %d, want %d", x, got, want)
		}
		near(t, "fix128", fix128(-x).value(), -x, 0x1p-33)
	}
	for _, x := range []float64{1e9, 1e15, -1e18, saturation} {
		if got := fix128(x).value(); got != x {
			t.Errorf("fix128(%v): got %v", x, got)
		}
	}
	if got := fix128(math.Inf(-1)).value(); got != -saturation {
		t.Errorf("fix128(-Inf): got %v", got)
	}
	a, ok := i128{-1, math.MaxUint64}.add(i128{0, 1})
	if a != (i128{}) || !ok {
		t.Errorf("-1 + 1: got %v, %v", a, ok)
	}
	if _, ok := (i128{math.MinInt64, 0}).add(i128{-1, math.MaxUint64}); ok {
		t.Error("minimum - 1: got no overflow")
	}
}
