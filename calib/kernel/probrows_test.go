package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// probReference is a row of probabilities from its definition. In a normalised row the largest one's logarithm is that
// of what the others leave, for the sum has lost them where they are small.
func probReference(q []float32) Row {
	sum, lost, arg := 0.0, 0.0, 0 // lost is what rounding took of the sum (Neumaier): 32,000 additions lose 1e-14
	for j, v := range q {
		if !(v >= 0 && v <= 1) {
			return Row{}
		}
		x, was := float64(v), sum
		sum += x
		lost += (max(x, was) - sum) + min(x, was)
		if v > q[arg] {
			arg = j
		}
	}
	sum += lost
	if !(math.Abs(sum-1) <= 0.05) {
		return Row{}
	}
	s := sum
	if math.Abs(sum-1) <= 0x1p-20 {
		s = 1
	}
	top := float64(q[arg])
	rest := 0.0
	for j, v := range q {
		if j != arg {
			rest += float64(v)
		}
	}
	lnTop := math.Log(top)
	if s != 1 {
		lnTop = -math.Log1p(rest / top)
	}
	r := Row{Arg: arg, Max: math.Log(top), LSE: math.Log(s), Conf: top / s, Scale: 1 / s, OK: true}
	for j, v := range q {
		p := float64(v) / s
		r.SumP2 += p * p
		switch {
		case j == arg:
			r.Entropy -= p * lnTop
		case v > 0:
			// math.Log is wrong for subnormals
			r.Entropy -= p * (math.Log(float64(v)*0x1p200) - 200*math.Ln2 - math.Log(s))
		}
		if j != arg {
			r.Second = max(r.Second, p)
		}
	}
	return r
}

// someProbs returns n rows of k of all the kinds that matter; about a fifth are to be refused.
func someProbs(rng *rand.Rand, n, k int) []float32 {
	q := make([]float32, n*k)
	for i := range n {
		probKind(rng, rng.IntN(24), q[i*k:(i+1)*k])
	}
	return q
}

// dirichlet fills row with normalised powers of uniforms: the larger the power, the more certain the row.
func dirichlet(rng *rand.Rand, row []float32, power, total float64) {
	w, sum := make([]float64, len(row)), 0.0
	for j := range w {
		w[j] = math.Pow(rng.Float64(), power)
		sum += w[j]
	}
	for j := range w {
		row[j] = float32(total * w[j] / sum)
	}
}

func probKind(rng *rand.Rand, kind int, row []float32) {
	k, at := len(row), rng.IntN(len(row))
	power := []float64{0.5, 1, 4, 30, 300}[rng.IntN(5)]
	total := []float64{1, 1, 1 + 0x1p-21, 1 - 0x1p-21, 1.001, 0.999, 1.04, 0.96, 1.06, 0.94}[rng.IntN(10)]
	for j := range row {
		row[j] = 0
	}
	switch kind {
	case 0: // one-hot, or nearly
		row[at] = []float32{1, 0.97, 1 - 0x1p-24, 0.99999}[rng.IntN(4)]
	case 1: // uniform
		for j := range row {
			row[j] = float32(1 / float64(k))
		}
	case 2: // edges of fifteen bins, ties
		a, b := rng.IntN(16), rng.IntN(k)
		row[at] = float32(a) / 15
		row[b] += float32(15-a) / 15
	case 3: // certain but for something tiny
		row[at] = 1
		row[rng.IntN(k)] = math.Float32frombits(rng.Uint32N(90 << 23))
		row[at] = 1
	case 4: // subnormals everywhere
		for j := range row {
			row[j] = math.Float32frombits(rng.Uint32N(1 << 23))
		}
		row[at] = 1
	case 5:
		dirichlet(rng, row, power, 1)
		row[at] = []float32{float32(math.NaN()), -1e-9, 1.0001, float32(math.Inf(1)), float32(math.Inf(-1)),
			float32(math.Copysign(0, -1))}[rng.IntN(6)]
	case 6: // certain, and normalised
		total = 1 + 0.001*rng.NormFloat64()
		dirichlet(rng, row, 1, 1e-4*rng.Float64())
		row[at] = float32(min(1, total))
	case 7: // as float16 rounds it
		dirichlet(rng, row, power, 1)
		for j := range row {
			row[j] = math.Float32frombits((math.Float32bits(row[j]) + 1<<12) &^ (1<<13 - 1))
		}
	default:
		dirichlet(rng, row, power, total)
	}
}

func checkProbRows(t *testing.T, rng *rand.Rand) {
	t.Helper()
	for _, k := range testKs() {
		n := 150
		if k > 2000 {
			n = 12
		}
		q := someProbs(rng, n, k)
		rows := make([]Row, n)
		ProbRows(rows, q, k)
		for i, r := range rows {
			row := q[i*k : (i+1)*k]
			want := probReference(row)
			compareProbs(t, fmt.Sprintf("%s K=%d row %d", pathName(), k, i), r, want)
			if t.Failed() {
				t.Fatalf("%v: got %+v, want %+v", row[:min(k, 40)], r, want)
			}
		}
	}
}

// compareProbs holds Conf, Second, Max and Scale to float64, and where q is taken as it is to the bit.
func compareProbs(t *testing.T, what string, got, want Row) {
	t.Helper()
	compare(t, what, got, want)
	if !want.OK || !got.OK {
		return
	}
	for _, v := range [][2]float64{{got.Conf, want.Conf}, {got.Second, want.Second}, {got.Scale, want.Scale}} {
		if want.LSE == 0 && v[0] != v[1] || math.Abs(v[0]-v[1]) > 1e-14*v[1] {
			t.Errorf("%s: got %.17g, want %.17g", what, v[0], v[1])
		}
	}
	if math.Abs(got.Max-want.Max) > 1e-15*(1+math.Abs(want.Max)) {
		t.Errorf("%s: max %.17g, want %.17g", what, got.Max, want.Max)
	}
}

func TestProbRowsAgainstReference(t *testing.T) {
	checkProbRows(t, rand.New(rand.NewPCG(21, 22)))
}

// TestProbRowsAreProbs: the block form gives what a row by itself does, edges and ties to the bit.
func TestProbRowsAreProbs(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for _, k := range []int{2, 3, 10, 15, 16, 63, 64, 100, 1000} {
		n := 100
		q, rows, p := someProbs(rng, n, k), make([]Row, n), make([]float64, k)
		ProbRows(rows, q, k)
		for i, r := range rows {
			want, ok := Probs(q[i*k:(i+1)*k], p)
			if r.OK != ok || ok && (r.Arg != want.Arg || math.Abs(r.Entropy-want.Entropy) > relTol*want.Entropy+1e-15) {
				t.Fatalf("K=%d row %d: got %+v, want %+v", k, i, r, want)
			}
			if ok && want.LSE == 0 && (r.Conf != want.Conf || r.Second != want.Second || r.Scale != 1) {
				t.Fatalf("K=%d row %d: got %+v, want %+v", k, i, r, want)
			}
		}
	}
}

func FuzzProbRows(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 0, 0}, uint8(2))
	f.Add([]byte{0, 0, 0, 63, 0, 0, 0, 63}, uint8(2))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 128, 63}, uint8(2))
	f.Add(make([]byte, 4*200), uint8(100))
	f.Add([]byte{0, 0, 192, 127, 0, 0, 128, 255}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, k uint8) {
		if k == 0 {
			return
		}
		n := len(b) / 4 / int(k)
		q := make([]float32, n*int(k))
		for i := range q {
			q[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		rows := make([]Row, n)
		ProbRows(rows, q, int(k))
		for i, r := range rows {
			compareProbs(t, "row", r, probReference(q[i*int(k):(i+1)*int(k)]))
		}
	})
}
