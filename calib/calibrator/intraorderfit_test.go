package calibrator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestIntraOrderGradient compares the gradient with central differences, and the value with the NLL of Apply.
func TestIntraOrderGradient(t *testing.T) {
	s := small(t, 60, 5)
	const temperature = 2.0
	const cell = orderReach * temperature / orderCells
	knots := []float64{0, 20 * cell, 77 * cell, 154 * cell, 282 * cell} // 0 to 5.5
	f := s.intraOrderLoss(knots, temperature)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 20 {
		x, grad := make([]float64, 5), make([]float64, 5)
		slopes := make([]float64, 5)
		for i := range x {
			x[i] = rng.NormFloat64()
			slopes[i], _ = betaOf(x[i])
		}
		value := f(grad, x)
		want := s.nll(&IntraOrderPreserving{p: intraOrderParams{Knots: knots, Slopes: slopes}})
		for j := 1; j < 5; j++ {
			d := temperature * (slopes[j] - slopes[j-1]) / orderRoughness
			want += d * d / (2 * 60)
		}
		if math.Abs(value-want) > 1e-12*want {
			t.Errorf("value %.15g, want %.15g", value, want)
		}
		for i := range x {
			// Differences of a value of this size are rounded by about value·2⁻⁵²/differenceStep.
			tolerance := 1e-7*(1+math.Abs(grad[i])) + value*0x1p-50/differenceStep
			if want := difference(f, x, i); math.Abs(grad[i]-want) > tolerance {
				t.Errorf("%d: got %.10g, differences %.10g", i, grad[i], want)
			}
		}
	}
}

// TestIntraOrderIsTheMinimum steps from the fit along every axis and in random directions; in the slopes the objective
// is convex, so nothing lower nearby means nothing lower.
func TestIntraOrderIsTheMinimum(t *testing.T) {
	s := small(t, 400, 4)
	c, r, err := FitIntraOrderPreserving(NewData(s.z, 4, s.y, s.w), Options{})
	if err != nil || !r.Converged || r.OnBound {
		t.Fatalf("%+v, %v", r, err)
	}
	ts, _, err := FitTemperature(NewData(s.z, 4, s.y, s.w), Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := s.intraOrderLoss(c.p.Knots, ts.T())
	n := len(c.p.Knots)
	x, skip := make([]float64, n), make([]float64, n)
	value := func(slopes []float64) float64 {
		for j, b := range slopes {
			x[j] = betaInverse(b)
		}
		return f(skip, x)
	}
	best := value(c.p.Slopes)
	rng := rand.New(rand.NewPCG(2, 9))
	for try := range 300 {
		slopes := c.Slopes()
		size := math.Pow(10, -1-2*rng.Float64())
		for j := range slopes {
			if try >= n || try == j {
				slopes[j] *= math.Exp(size * rng.NormFloat64())
			}
		}
		if v := value(slopes); v < best-1e-9 {
			t.Errorf("slopes %.4f: %.12f, fit %.4f %.12f", slopes, v, c.p.Slopes, best)
		}
	}
}

// TestGapKnots holds that the knots part the probability below the top class evenly.
func TestGapKnots(t *testing.T) {
	s := small(t, 2000, 6)
	const temperature = 1.5
	knots := s.gapKnots(temperature)
	if len(knots) != orderKnots || knots[0] != 0 {
		t.Fatalf("got %v, want %d from 0", knots, orderKnots)
	}
	mass := make([]float64, orderKnots)
	q := intraOrderParams{Knots: knots}
	p := make([]float64, 6)
	var total float64
	for i := range s.y {
		row := s.row(i)
		softmax(p, row, temperature)
		a := argmax(row)
		for k := range row {
			if k != a {
				mass[q.piece(row[a]-row[k])] += s.w[i] * p[k]
				total += s.w[i] * p[k]
			}
		}
	}
	for j, m := range mass[:orderKnots-1] {
		if want := (1 - orderTail) / (orderKnots - 1); math.Abs(m/total-want) > 0.01 { // the cells' width
			t.Errorf("piece %d has %.4f, want %.4f", j, m/total, want)
		}
	}
	if flat := (&sample{n: 1, k: 2, z: []float64{3, 3}, y: []int32{0}, w: []float64{1},
		total: 1}).gapKnots(1); len(flat) != 1 {
		t.Errorf("equal scores gave the knots %v, want 0 alone", flat)
	}
}
