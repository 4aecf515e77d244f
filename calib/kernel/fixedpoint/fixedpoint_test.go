package fixedpoint

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	xs := []float64{0, 1, .1, 1.0 / 3, 0x1p-33, 3 * 0x1p-33, 0x1p-34, 0x1p-1074, Limit - 0x1p-33}
	for range 2000 {
		xs = append(xs, math.Ldexp(rng.Float64(), 19-rng.IntN(60)))
	}
	for _, x := range xs {
		if got, want := Round(x), int64(math.RoundToEven(x*(1<<Bits))); got != want {
			t.Errorf("Round(%v): got %d, want %d", x, got, want)
		}
	}
}

// values are probabilities-to-be of all kinds, hostile ones only if asked for.
func values(rng *rand.Rand, n int, edge, scale float64, hostile bool) []float32 {
	v := make([]float32, n)
	odd := []float32{0, math.SmallestNonzeroFloat32, float32(edge / scale), float32(1 / scale), 1e-30}
	if hostile {
		odd = append(odd, float32(math.NaN()), float32(math.Inf(1)), -1e-30, float32(math.Copysign(0, -1)),
			float32(1.01/scale), float32(math.Inf(-1)))
	}
	for k := range v {
		v[k] = float32(math.Exp(-20*rng.Float64()) / scale)
		if rng.IntN(max(4, n/3)) == 0 {
			v[k] = odd[rng.IntN(len(odd))]
		}
	}
	return v
}

func (l Large) clone() Large {
	return Large{
		Class: slices.Clone(l.Class), V: slices.Clone(l.V), End: slices.Clone(l.End), Zero: slices.Clone(l.Zero),
	}
}

func (l Large) equal(o Large) bool {
	return slices.Equal(l.Class, o.Class) && slices.Equal(l.V, o.V) && slices.Equal(l.End, o.End) &&
		slices.Equal(l.Zero, o.Zero)
}

// TestAddScaled compares every path with the definition in exact arithmetic.
func TestAddScaled(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	refused := 0
	for i := range 1500 {
		k, edge := rng.IntN(20)+1, 1/float64(rng.IntN(20)+1)
		if i%5 == 0 {
			k = rng.IntN(600) + 1
		}
		r := ScaledRows{K: k}
		for j := range rng.IntN(6) {
			scale := math.Exp(-5 * rng.Float64())
			if j%3 == 0 {
				scale = 1
			}
			r.V = append(r.V, values(rng, k, edge, scale, rng.IntN(10) == 0)...)
			r.Rows, r.Scale = append(r.Rows, int32(j)), append(r.Scale, scale)
		}
		rng.Shuffle(len(r.Rows), func(i, j int) {
			r.Rows[i], r.Rows[j] = r.Rows[j], r.Rows[i]
			r.Scale[i], r.Scale[j] = r.Scale[j], r.Scale[i]
		})
		before := make([]int64, Padded(k))
		for k := range before {
			before[k] = rng.Int64N(1 << 40)
		}
		at := rng.IntN(len(r.Rows) + 1)
		old := Large{Class: []uint32{7}, V: []float32{.7}, End: []int{1}, Zero: []uint8{0}}
		want, wantList := slices.Clone(before), old.clone()
		wantDone := slowAddScaled(want, &wantList, &r, at, edge)
		if wantDone < len(r.Rows) {
			refused++
		}
		for name, use := range scaledPaths() {
			restore := use()
			got, l := slices.Clone(before), old.clone()
			done := AddScaledRows(got, &l, &r, at, edge)
			restore()
			if done != wantDone || !slices.Equal(got, want) || !l.equal(wantList) {
				t.Fatalf("%s, K = %d, from %d: got %d %v %v, want %d %v %v for %+v, edge %v",
					name, k, at, done, got, l, wantDone, want, wantList, r, edge)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d rows were refused: the test should have more", refused)
	}
}

func slowAddScaled(dense []int64, l *Large, r *ScaledRows, at int, edge float64) int {
	for ; at < len(r.Rows); at++ {
		scale, row := r.Scale[at], r.V[int(r.Rows[at])*r.K:][:r.K]
		for _, x := range row {
			if !(x >= 0 && x <= float32((1+Slack)*(1/scale))) || math.Signbit(float64(x)) {
				return at
			}
		}
		zero := uint8(0)
		for k, x := range row {
			if x == 0 {
				zero = 1
			}
			if x <= float32(min(edge*(1/scale), math.MaxFloat32)) {
				dense[k] += exactRound(float64(x), scale)
			} else {
				l.Class, l.V = append(l.Class, uint32(k)), append(l.V, x)
			}
		}
		l.Zero = append(l.Zero, zero)
		l.End = append(l.End, len(l.V))
	}
	return at
}

// exactRound is the definition of RoundProduct in big numbers.
func exactRound(x, y float64) int64 {
	f := new(big.Float).SetPrec(3000).SetFloat64(x)
	f.Mul(f, new(big.Float).SetPrec(2000).SetFloat64(y))
	f.SetMantExp(f, Bits)
	whole, _ := f.Int64()
	rest, _ := new(big.Float).Sub(f, new(big.Float).SetInt64(whole)).Float64()
	if rest > .5 || rest == .5 && whole%2 == 1 {
		whole++
	}
	return whole
}

// TestAddSoft compares the paths bit by bit, and the plain one with the definition.
func TestAddSoft(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 500 {
		n := 8 * (rng.IntN(4) + 1)
		m := n - rng.IntN(8)
		x := 6.0 / float64(m) * rng.Float64()
		g := make([]float64, n)
		for j := range m {
			g[j] = math.Exp(-x * float64(j*j))
		}
		rho, c, w := math.Exp(2*x*float64(m)*(rng.Float64()-.1)), rng.Float64(), 1.0
		if i%2 == 0 {
			w = math.Exp(10 * rng.Float64())
		}
		sum := 0.0
		for j := range m {
			sum += g[j] * math.Pow(rho, float64(j))
		}
		var want [3][]int64
		for name, use := range scaledPaths() {
			restore := use()
			var got [3][]int64
			for d := range got {
				got[d] = make([]int64, n)
				for j := range got[d] {
					got[d][j] = int64(j)
				}
			}
			SoftSums{got[0], got[1], got[2]}.Add(g, make([]float64, n), SoftRow{rho, c, w})
			restore()
			for d := range got {
				for j := range got[d] {
					u := g[j] * math.Pow(rho, float64(j)) / sum * w * math.Pow(c, float64(d))
					if d := math.Abs(float64(got[d][j]-int64(j)) - u*(1<<32)); d > .5+1e-12*w*(1<<32) {
						t.Fatalf("%s: bin %d is off by %v units", name, j, d)
					}
				}
				if want[d] == nil {
					want[d] = got[d]
				} else if !slices.Equal(got[d], want[d]) {
					t.Fatalf("%s: got %v, want %v", name, got[d], want[d])
				}
			}
		}
	}
}

func TestPanics(t *testing.T) {
	one := SoftRow{1, 1, 1}
	nine := func(row int32) *ScaledRows {
		return &ScaledRows{V: make([]float32, 9), K: 9, Rows: []int32{row}, Scale: []float64{1}}
	}
	for name, f := range map[string]func(){
		"short sums": func() {
			AddScaledRows(make([]int64, 15), new(Large), nine(0), 0, .1)
		},
		"no such row": func() {
			AddScaledRows(make([]int64, 16), new(Large), nine(1), 0, .1)
		},
		"bins": func() {
			SoftSums{make([]int64, 7), make([]int64, 7), make([]int64, 7)}.Add(make([]float64, 7), make([]float64, 7),
				one)
		},
		"sums": func() {
			SoftSums{make([]int64, 8), make([]int64, 7), make([]int64, 8)}.Add(make([]float64, 8), make([]float64, 8),
				one)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkAddScaled(b *testing.B) {
	for name, use := range scaledPaths() {
		for _, k := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/K=%d", name, k), func(b *testing.B) {
				defer use()()
				const rows = 64
				rng := rand.New(rand.NewPCG(1, 1))
				r := ScaledRows{K: k}
				for i := range rows {
					r.V = append(r.V, values(rng, k, 1.0/15, 1, false)...)
					r.Rows, r.Scale = append(r.Rows, int32(i)), append(r.Scale, 1)
				}
				dense, l := make([]int64, Padded(k)), new(Large)
				for b.Loop() {
					l.Reset()
					AddScaledRows(dense, l, &r, 0, 1.0/15)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}

func BenchmarkAddSoft(b *testing.B) {
	for name, use := range scaledPaths() {
		b.Run(name, func(b *testing.B) {
			defer use()()
			g, e := make([]float64, 16), make([]float64, 16)
			for j := range 15 {
				g[j] = math.Exp(-.44 * float64(j*j))
			}
			sums := SoftSums{make([]int64, 16), make([]int64, 16), make([]int64, 16)}
			for b.Loop() {
				sums.Add(g, e, SoftRow{1.5, .8, 1})
			}
		})
	}
}

// TestAddSoftRows compares with row by row, on every path.
func TestAddSoftRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, m := range []int{8, 15, 16, 20} {
		n, rows := Padded(m), 300
		g := make([]float64, n)
		for j := range m {
			g[j] = math.Exp(-.4 * float64(j*j))
		}
		rho, c, hit := make([]float64, rows), make([]float64, rows), make([]uint8, rows)
		var want [4][]int64
		for f := range want {
			want[f] = make([]int64, n)
		}
		e := make([]float64, n)
		for i := range rho {
			rho[i], c[i] = math.Exp(13*rng.Float64()), rng.Float64()
			s := want[0]
			if rng.IntN(3) > 0 {
				hit[i], s = 0xFF, want[1]
			}
			addSoftGo(SoftSums{s, want[2], want[3]}, g, e, SoftRow{rho[i], c[i], 1})
		}
		for name, use := range scaledPaths() {
			restore := use()
			var got [4][]int64
			for f := range got {
				got[f] = make([]int64, n)
			}
			(&OutcomeSums{got[0], got[1], got[2], got[3]}).AddRows(g, e, SoftRows{rho, c, hit})
			restore()
			for f := range got {
				if !slices.Equal(got[f], want[f]) {
					t.Errorf("%s, %d bins, sum %d: got %v, want %v", name, m, f, got[f], want[f])
				}
			}
		}
	}
}

// TestExp compares with package math, which is within an ulp of the truth, and the paths with each other.
func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		c := make([]float64, rng.IntN(40))
		rate, first := 700*(rng.Float64()-.5)*math.Exp(-5*rng.Float64()), rng.Float64()
		for i := range c {
			c[i] = rng.Float64()
		}
		for name, use := range scaledPaths() {
			restore := use()
			got := make([]float64, len(c))
			Ratios(got, c, rate, first)
			restore()
			for i, v := range c {
				x := rate * (v - first)
				if got[i] != Exp(x) {
					t.Fatalf("%s: exp(%v): got %v, want %v", name, x, got[i], Exp(x))
				}
				if want := math.Exp(x); math.Abs(got[i]-want) > want*0x1p-51 {
					t.Fatalf("exp(%v): got %v, want %v", x, got[i], want)
				}
			}
		}
	}
}
