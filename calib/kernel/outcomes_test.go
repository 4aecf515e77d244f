package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOutcomes compares all paths with each number worked out on its own.
func TestOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, k := range []int{2, 10, 70} {
		for _, n := range []int{1, 7, 8, 9, 40} {
			z, e := make([]float32, n*k), make([]float32, n*k)
			for i := range z {
				z[i] = float32(rng.NormFloat64() * 3 * math.Exp(2*rng.NormFloat64()))
			}
			clear(z[:k]) // a tie: the margin is 0 and the entropy that of the uniform distribution
			rows, padded := make([]Row, n), (n+7)&^7
			LogitRows(rows, e, z, k, 1)
			y, w := make([]int32, padded), make([]float64, padded)
			for i := range n {
				y[i], w[i] = int32(rng.IntN(k+1)-1), 1
				if rng.IntN(3) == 0 {
					y[i] = int32(rows[i].Arg)
				}
				if rng.IntN(2) == 0 {
					w[i] = rng.Float64() * 10
				}
			}
			lnK := Log(float64(k))
			got, plain := NewOutcomes(n), NewOutcomes(n)
			in := &LabelledRows{Rows: rows, V: e, Z: z, K: k, Y: y, W: w, LnK: lnK}
			got.Fill(in)
			plain.fillGo(in)
			for name, f := range map[string][2][]float64{
				"conf": {got.Conf, plain.Conf}, "margin": {got.Margin, plain.Margin},
				"negent": {got.NegEnt, plain.NegEnt},
				"p":      {got.P, plain.P}, "nll": {got.NLL, plain.NLL}, "brier": {got.Brier, plain.Brier},
			} {
				if !slices.Equal(f[0][:n], f[1][:n]) {
					t.Errorf("K = %d, %d rows: %s is\n%v, plain\n%v", k, n, name, f[0][:n], f[1][:n])
				}
			}
			if !slices.Equal(got.Hit[:n], plain.Hit[:n]) {
				t.Errorf("K = %d, %d rows: hits %v, plain %v", k, n, got.Hit[:n], plain.Hit[:n])
			}
			for i, r := range rows {
				negent := min(1, max(0, 1-r.Entropy/lnK))
				if got.Conf[i] != r.Conf || got.Margin[i] != r.Margin() || got.NegEnt[i] != negent {
					t.Errorf("K = %d, row %d: conf %v, margin %v, negent %v, want %v, %v, %v", k, i,
						got.Conf[i], got.Margin[i], got.NegEnt[i], r.Conf, r.Margin(), negent)
				}
				if y[i] < 0 {
					if got.Hit[i] != 0 {
						t.Errorf("K = %d, row %d is correct without a label", k, i)
					}
					continue
				}
				p := min(1, float64(e[i*k+int(y[i])])*r.Scale)
				nll, brier := w[i]*NLL(r, z[i*k:(i+1)*k], int(y[i]), false), w[i]*Brier(r, p)
				hit := r.Arg == int(y[i])
				if got.P[i] != p || got.NLL[i] != nll || got.Brier[i] != brier || (got.Hit[i] == 1) != hit {
					t.Errorf("K = %d, row %d: p %v, nll %v, brier %v, hit %v, want %v, %v, %v", k, i,
						got.P[i], got.NLL[i], got.Brier[i], got.Hit[i], p, nll, brier)
				}
			}
		}
	}
}

// TestNLLFarFromZero: a number added to all logits of a row has no effect, however large; LSE alone would round off all
// of ln S.
func TestNLLFarFromZero(t *testing.T) {
	for _, s := range []float32{0, 1 << 16, 1 << 17, 1 << 18, 1e8, 1e16, 1e30, -1e16, -1e30} {
		z := []float32{s, s, s, s, s, s, s, s, s}
		y, w := make([]int32, outcomeLanes), make([]float64, outcomeLanes)
		copy(y, []int32{0, 2, 1})
		copy(w, []float64{1, 1, 2})
		rows, e, got := make([]Row, 3), make([]float32, len(z)), NewOutcomes(3)
		LogitRows(rows, e, z, 3, 1)
		got.Fill(&LabelledRows{Rows: rows, V: e, Z: z, K: 3, Y: y, W: w, LnK: Log(3)})
		for i, r := range rows {
			one, ok := Logits(z[:3], make([]float64, 3))
			wide := []float64{float64(s), float64(s), float64(s)}
			top, topOK := LogitTop(wide, make([]float64, 3))
			if !ok || !topOK {
				t.Fatalf("a row of %g is refused", s)
			}
			for name, v := range map[string]float64{
				"LogitRows": NLL(r, z[:3], int(y[i]), false), "Logits": NLL(one, wide, int(y[i]), false),
				"LogitTop": top.LogitNLL(wide[0]), "outcomes": got.NLL[i] / w[i], "LogSum": r.LogSum(),
			} {
				if math.Abs(v-math.Log(3)) > 2e-11 {
					t.Errorf("logits %g, row %d, %s: %v, want ln 3 = %v", s, i, name, v, math.Log(3))
				}
			}
		}
	}
}
