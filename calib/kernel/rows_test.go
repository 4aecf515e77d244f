package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// relTol is the accuracy that LogitRows states.
const relTol = 1e-6

// rowReference is a row at temperature t from its definition, in float64 with the maximum's own terms kept apart.
func rowReference(z []float32, t float64) Row {
	r := Row{OK: true}
	for j, v := range z {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return Row{}
		}
		if v > z[r.Arg] {
			r.Arg = j
		}
	}
	top := float64(z[r.Arg])
	var rest, gaps, squares, second float64
	ties := 0
	for _, v := range z {
		if v == z[r.Arg] {
			ties++
			continue
		}
		d := (float64(v) - top) / t
		e := math.Exp(d)
		rest += e
		squares += e * e
		second = max(second, e)
		if e > 0 {
			gaps -= d * e
		}
	}
	if ties > 1 {
		second = 1
	}
	n := float64(ties)
	sum := n + rest
	lnSum := math.Log(n) + math.Log1p(rest/n)
	r.Max, r.LSE = top/t, top/t+lnSum
	r.Conf, r.Scale, r.Second = 1/sum, 1/sum, second/sum
	r.Entropy, r.SumP2 = lnSum+gaps/sum, (n+squares)/(sum*sum)
	return r
}

func compare(t *testing.T, what string, got, want Row) {
	t.Helper()
	if got.OK != want.OK {
		t.Fatalf("%s: OK %v, want %v", what, got.OK, want.OK)
	}
	if !want.OK {
		return
	}
	if got.Arg != want.Arg {
		t.Errorf("%s: arg %d, want %d", what, got.Arg, want.Arg)
	}
	rel := func(name string, g, w, scale float64) {
		if !(math.Abs(g-w) <= relTol*scale+0x1p-1022) { // subnormal results have no relative accuracy
			t.Errorf("%s: %s = %.12g, want %.12g (relative %.2g)", what, name, g, w, math.Abs(g-w)/scale)
		}
	}
	rel("max", got.Max, want.Max, math.Abs(want.Max))
	rel("lse", got.LSE, want.LSE, max(math.Abs(want.Max), want.LSE-want.Max))
	rel("conf", got.Conf, want.Conf, want.Conf)
	rel("scale", got.Scale, want.Scale, want.Scale)
	rel("second", got.Second, want.Second, want.Second)
	rel("entropy", got.Entropy, want.Entropy, want.Entropy)
	rel("sumP2", got.SumP2, want.SumP2, want.SumP2)
}

// someRows returns n rows of k scores of all the kinds that have bitten.
func someRows(rng *rand.Rand, n, k int) []float32 {
	z := make([]float32, n*k)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for i := range n {
		row := z[i*k : (i+1)*k]
		scale := []float64{1, 4, 0.01, 15, 80, 300}[rng.IntN(6)]
		shift := []float64{0, 0, 100, -1000}[rng.IntN(4)]
		for j := range row {
			row[j] = float32(scale*rng.NormFloat64() + shift)
		}
		at := rng.IntN(k)
		switch rng.IntN(24) {
		case 0: // identical
			for j := range row {
				row[j] = row[0]
			}
		case 1: // ties for the maximum
			for j := range row {
				row[j] = float32(rng.IntN(3))
			}
		case 2: // ±80
			for j := range row {
				row[j] = float32(160*rng.IntN(2) - 80)
			}
		case 3: // one far ahead
			row[at] = float32(shift) + 40
		case 4:
			row[at] = 1e30
		case 5:
			row[at] = -3.4e38
		case 6:
			row[at] = nan
		case 7:
			row[at] = inf
		case 8:
			row[at] = -inf
		case 9:
			for j := range row {
				row[j] = []float32{nan, inf, -inf}[i%3]
			}
		case 10: // zeros of both signs
			for j := range row {
				row[j] = float32(math.Copysign(0, float64(rng.IntN(2))-0.5))
			}
		case 11: // near ties
			for j := range row {
				row[j] = math.Float32frombits(math.Float32bits(7) + uint32(rng.IntN(4)))
			}
		case 12:
			for j := range row {
				row[j] = -math.MaxFloat32
			}
			row[at] = math.MaxFloat32
		}
	}
	return z
}

func testKs() []int {
	ks := []int{200, 255, 256, 257, 272, 273, 512, 1000, 1003}
	for k := 1; k <= 130; k++ {
		ks = append(ks, k)
	}
	return append(ks, 8191, 8192, 8205, 32000) // the vector paths look one row ahead from 8192 on
}

func TestLogitRowsAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, k := range testKs() {
		n := 53
		if k > 2000 {
			n = 19
		}
		for _, temp := range []float64{1, 0.37, 2.5, 20, 0.05} {
			z := someRows(rng, n, k)
			rows, e := make([]Row, n), make([]float32, n*k)
			LogitRows(rows, e, z, k, temp)
			for i := range rows {
				row := z[i*k : (i+1)*k]
				compare(t, fmt.Sprintf("%s K=%d t=%g row %d", pathName(), k, temp, i), rows[i], rowReference(row, temp))
				if rows[i].OK {
					checkE(t, k, rows[i], e[i*k:(i+1)*k], row, temp)
				}
				if t.Failed() {
					t.Fatalf("%v", row[:min(k, 40)])
				}
			}
		}
	}
}

// checkE checks what LogitRows leaves for p.
func checkE(t *testing.T, k int, r Row, e, z []float32, temp float64) {
	t.Helper()
	for j, v := range e {
		want := math.Exp((float64(z[j]) - float64(z[r.Arg])) / temp)
		if !(math.Abs(float64(v)-want) <= relTol*want+0x1p-125) || v > 1 || z[j] == z[r.Arg] && v != 1 {
			t.Fatalf("K=%d e[%d] = %g, want %g", k, j, v, want)
		}
	}
	if float64(e[r.Arg])*r.Scale != r.Conf {
		t.Fatalf("K=%d: e·Scale of the maximum is %g, Conf %g", k, float64(e[r.Arg])*r.Scale, r.Conf)
	}
}

// BenchmarkLogitRows is the path that this build takes on this machine.
func BenchmarkLogitRows(b *testing.B) {
	const n = 512
	random := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{10, 100, 1000} {
		z, rows := make([]float32, n*k), make([]Row, n)
		for i := range z {
			z[i] = float32(4 * random.NormFloat64())
		}
		b.Run(fmt.Sprintf("K=%d", k), func(b *testing.B) {
			at := testsize.Processor(b)
			for b.Loop() {
				LogitRows(rows, nil, z, k, 1)
			}
			b.ReportMetric(float64(testsize.Processor(b)-at)/float64(b.N)/n, "cpu-ns/row")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
