package calibrator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestParameterisedGradient compares both objectives with central differences, away from the start, where the
// output's weights are 0.
func TestParameterisedGradient(t *testing.T) {
	for _, mse := range []bool{false, true} {
		for _, set := range []Parameterised{{Top: 10, Hidden: 5}, {Top: 3, Hidden: 2}, {Top: 1, Hidden: 3}} {
			set.MSE, set.Ridge = mse, 10
			s := small(t, 60, 4)
			ts, _, err := FitTemperature(NewData(s.z, s.k, s.y, s.w), Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := s.newNetwork(ts, set, 7)
			f := n.loss(set)
			rng := rand.New(rand.NewPCG(5, 6))
			x := n.start()
			for i := range x {
				x[i] += 0.5 * rng.NormFloat64()
			}
			grad := make([]float64, len(x))
			f(grad, x)
			for i := range x {
				if want := difference(f, x, i); math.Abs(grad[i]-want) > 1e-8*(1+math.Abs(want)) {
					t.Errorf("mse %v, %+v, parameter %d: got %.10g, differences %.10g", mse, set, i, grad[i], want)
				}
			}
		}
	}
}

// TestUnscaledNetwork holds the network on plain inputs to the one on standardised inputs.
func TestUnscaledNetwork(t *testing.T) {
	s := small(t, 60, 4)
	ts, _ := NewTemperature(1.7)
	n := s.newNetwork(ts, Parameterised{Top: 10, Hidden: 5}, 1)
	theta := n.start()
	for i := range theta {
		theta[i] += 0.1 * float64(i%7)
	}
	std := n.view(theta)
	c := &ParameterisedTemperature{p: n.unscaled(theta)}
	h1, h2 := make([]float64, n.h), make([]float64, n.h)
	for i := range s.n {
		want, _ := std.temperature(n.x[i*n.m:(i+1)*n.m], h1, h2)
		if got := c.T(s.row(i)); math.Abs(got-want) > 1e-12*want {
			t.Errorf("row %d: T %.15g, want %.15g", i, got, want)
		}
	}
}

func TestLargestAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		z := make([]float64, 1+rng.IntN(20))
		for i := range z {
			z[i] = float64(rng.IntN(8)) // ties
		}
		top := make([]float64, 1+rng.IntN(len(z)))
		largest(top, z)
		slices.SortFunc(z, func(a, b float64) int { return int(b - a) })
		if !slices.Equal(top, z[:len(top)]) {
			t.Fatalf("got %v, want %v", top, z[:len(top)])
		}
	}
}

// slowLoss is the objective in θ, row by row with the library's functions.
func (n *network) slowLoss(set Parameterised) objective {
	ridge := set.Ridge / n.rows
	first := n.start()
	h1, h2, g1 := make([]float64, n.h), make([]float64, n.h), make([]float64, n.h)
	q := make([]float64, n.k)
	return func(grad, theta []float64) float64 {
		clear(grad)
		p, g := n.view(theta), n.view(grad)
		var sum float64
		for i, y := range n.y {
			x := n.x[i*n.m : (i+1)*n.m]
			t, share := p.temperature(x, h1, h2)
			of := rowNLL
			if set.MSE {
				of = rowMSE
			}
			loss, slope := of(q, n.row(i), y, 1/t)
			sum += n.w[i] * loss
			// dβ/dout = -β (h - l) σ'.
			out := n.w[i] / n.total * slope / -t * (temperatureHi - temperatureLo) * share * (1 - share)
			if out != 0 {
				grad[len(grad)-1] += out
				p.back(&g, out, layers{x, h1, h2}, g1)
			}
		}
		var away float64
		for j, v := range theta {
			d := v - first[j]
			away += d * d
			grad[j] += 2 * ridge * d
		}
		return sum/n.total + ridge*away
	}
}

// rowNLL is the NLL of softmax(β z) and its derivative by β. q is scratch.
func rowNLL(q, z []float64, y int32, beta float64) (loss, slope float64) {
	sum, mean, top := tempered(q, z, beta)
	d := z[y] - top
	return math.Log(sum) - beta*d, mean - d
}

// rowMSE is Σ_k (softmax(β z)_k - 1[y = k])² and its derivative by β. q is scratch.
func rowMSE(q, z []float64, y int32, beta float64) (loss, slope float64) {
	sum, mean, top := tempered(q, z, beta)
	for k, v := range z {
		p := q[k] / sum
		miss := p
		if k == int(y) {
			miss--
		}
		loss += miss * miss
		if p > 0 {
			slope += 2 * miss * p * (v - top - mean)
		}
	}
	return loss, slope
}

// tempered writes exp(β d), d = z - max z, to q and returns their sum, the mean of d under them, and max z.
func tempered(q, z []float64, beta float64) (sum, mean, top float64) {
	top = math.Inf(-1)
	for _, v := range z {
		top = max(top, v)
	}
	for k, v := range z {
		d := v - top
		e := math.Exp(beta * d)
		q[k] = e
		if e > 0 {
			sum += e
			mean += e * d
		}
	}
	return sum, mean / sum, top
}

// TestNetworkLossIsThatOfRows compares value and gradient of the blocks with those of single rows.
func TestNetworkLossIsThatOfRows(t *testing.T) {
	for _, c := range []struct{ n, k, hidden int }{{1, 2, 1}, {63, 3, 5}, {64, 12, 5}, {200, 4, 9}} {
		s := small(t, c.n, c.k)
		rng := rand.New(rand.NewPCG(3, uint64(c.k)))
		for i := range s.w {
			s.w[i] = float64(1 + i%3)
			s.total += s.w[i] - 1
		}
		copy(s.row(c.n/2), make([]float64, c.k)) // ties
		s.row(c.n - 1)[0] = 4000                 // underflow of all others
		for _, mse := range []bool{false, true} {
			set, _ := Parameterised{Hidden: c.hidden, MSE: mse}.withDefaults()
			n := s.newNetwork(Temperature{t: 1.3}, set, 1)
			theta := n.start()
			for i := range theta {
				theta[i] += 0.7 * rng.NormFloat64()
			}
			got, want := make([]float64, len(theta)), make([]float64, len(theta))
			a, b := n.loss(set)(got, theta), n.slowLoss(set)(want, theta)
			if math.Abs(a-b) > 1e-12*(1+math.Abs(b)) {
				t.Errorf("%+v MSE %v: %.15g, want %.15g", c, mse, a, b)
			}
			for i, v := range want {
				if math.Abs(got[i]-v) > 1e-11*(1+math.Abs(v)) {
					t.Errorf("%+v MSE %v: gradient %d is %.15g, want %.15g", c, mse, i, got[i], v)
				}
			}
		}
	}
}

func BenchmarkNetworkLoss(b *testing.B) {
	const n, k = 10_000, 10
	s := small(b, n, k)
	set, _ := Parameterised{}.withDefaults()
	net := s.newNetwork(Temperature{t: 1.3}, set, 1)
	theta := net.start()
	grad := make([]float64, len(theta))
	for name, f := range map[string]objective{"blocks": net.loss(set), "rows": net.slowLoss(set)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(grad, theta)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
