package calibrator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// byClass returns rows whose labels follow softmax(z_k/T_k) for T_k that differ by class.
func byClass(n, k int, deviation float64) ([]float64, []int32) {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(n)))
	z, y, t := make([]float64, n*k), make([]int32, n), make([]float64, k)
	for j := range t {
		t[j] = math.Exp(deviation * rng.NormFloat64())
	}
	for i := range y {
		best := math.Inf(-1)
		for j := range k {
			v := 3 * rng.NormFloat64()
			z[i*k+j] = v
			if g := v/t[j] - math.Log(rng.ExpFloat64()); g > best {
				best, y[i] = g, int32(j)
			}
		}
	}
	return z, y
}

// TestClassAffineEvaluations holds the evaluations down where the classes differ by orders of magnitude in their rows,
// and many have none.
func TestClassAffineEvaluations(t *testing.T) {
	const n, k, most = 1500, 300, 60
	z, y := byClass(n, k, 0.4)
	for _, method := range []string{"class_temperature", "vector"} {
		_, r, err := Fit(method, NewData(z, k, y, nil), Options{})
		if err != nil || !r.Converged || r.Iterations > most {
			t.Errorf("%s: %d evaluations, converged %t, %v; at most %d", method, r.Iterations, r.Converged, err, most)
		}
	}
}

// plainAffineLoss is the objective of classAffine by its definition.
func plainAffineLoss(s *sample, x []float64, ridge float64) (sum float64) {
	for i, y := range s.y {
		z, e := s.row(i), 0.0
		for j, v := range z {
			e += math.Exp(x[j]*v + x[s.k+j] - x[y]*z[y] - x[s.k+int(y)])
		}
		sum += s.w[i] / s.total * math.Log(e)
	}
	for j, v := range x {
		if j < s.k {
			v--
		}
		sum += ridge * v * v
	}
	return sum
}

// coordinateDescent minimises f by one x after the other, each by halving a step for as long as neither side is lower.
func coordinateDescent(f func([]float64) float64, x, low, high []float64) float64 {
	at := f(x)
	for range 300 {
		before := at
		for j, v := range x {
			for step := 1.0; step > 1e-7; {
				lower := false
				for _, to := range []float64{v - step, v + step} {
					x[j] = min(high[j], max(low[j], to))
					if next := f(x); next < at {
						at, v, lower = next, x[j], true
						break
					}
				}
				if x[j] = v; !lower {
					step /= 4
				}
			}
		}
		if before-at < 1e-13 {
			break
		}
	}
	return at
}

// TestClassAffineAgainstCoordinateDescent compares both fits with a plain, slow minimiser: at the bounds, with weights
// of many sizes, with a class that has no rows, with ties, on one row and on rows that are separable.
func TestClassAffineAgainstCoordinateDescent(t *testing.T) {
	const k = 3
	z, y := byClass(60, k, 0.6)
	far, ties, right, absent, w := make([]float64, len(z)), make([]float64, len(z)), make([]int32, len(y)),
		make([]int32, len(y)), make([]float64, len(y))
	for i, v := range z {
		far[i], ties[i] = v*math.Pow(8, float64(i%k)), math.Round(v/3)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for i, v := range y {
		right[i], absent[i] = int32(argmax(z[i*k:(i+1)*k])), min(v, k-2)
		w[i] = math.Pow(10, 6*(2*rng.Float64()-1))
	}
	for name, d := range map[string]Data[float64]{
		"plain":     NewData(z, k, y, nil),
		"far":       NewData(far, k, y, nil),
		"ties":      NewData(ties, k, y, nil),
		"separable": NewData(z, k, right, nil),
		"absent":    NewData(z, k, absent, nil),
		"weights":   NewData(z, k, y, w),
		"one row":   NewData(z[:k], k, y[:1], nil),
	} {
		s, err := newSample("test", d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for method, ridge := range map[string]float64{"class_temperature": 0, "vector": ridge} {
			c, r, err := Fit(method, d, Options{})
			if err != nil || !r.Converged {
				t.Fatalf("%s, %s: %+v, %v", method, name, r, err)
			}
			var x, low, high []float64
			switch c := c.(type) {
			case *Vector:
				x = append(append(x, c.p.W...), c.p.B...)
			case *ClassTemperature:
				for _, t := range c.p.T {
					x = append(x, 1/t)
				}
				x = append(x, make([]float64, k)...)
			}
			got := plainAffineLoss(s, x, ridge)
			for j := range x {
				lo, hi := math.Inf(-1), math.Inf(1)
				if method == "class_temperature" {
					if lo, hi = 1/MaxTemperature, 1/MinTemperature; j >= k {
						lo, hi = 0, 0
					}
				}
				low, high = append(low, lo), append(high, hi)
				x[j] = max(lo, min(hi, 1))
			}
			want := coordinateDescent(func(x []float64) float64 { return plainAffineLoss(s, x, ridge) }, x, low, high)
			t.Logf("%s, %s: %d evaluations, %.12g, coordinate descent %.3g more", method, name, r.Iterations, got,
				want-got)
			if !(got <= want+1e-9) {
				t.Errorf("%s, %s: %.12g, coordinate descent %.12g", method, name, got, want)
			}
		}
	}
}

func BenchmarkClassAffine(b *testing.B) {
	z, y := byClass(2000, 10, 0.4)
	for _, method := range []string{"class_temperature", "vector"} {
		b.Run(method, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := Fit(method, NewData(z, 10, y, nil), Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
