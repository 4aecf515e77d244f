package recipe

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/trainer/philox"
)

func TestController(t *testing.T) {
	stable, printed := MaCCalStable().MaCCal, MaCCalPrinted().MaCCal
	fixed := *printed
	fixed.Adaptive = false
	for _, c := range []struct {
		name              string
		m                 *MaCCal
		q, conf, acc, eta float64
		want              float64
	}{
		{"printed, overconfident", printed, 0.5, 0.90, 0.9, 0.1, 0.545},
		{"printed, clipped", printed, 0.5, 0.99, 0.5, 0.1, 0.6},
		{"printed, clipped below", printed, 0.5, 0.3, 0.9, 0.1, 0.4},
		{"printed, at 1", printed, 0.98, 0.99, 0.5, 0.1, 1},
		{"printed, at 0", printed, 0.05, 0.2, 0.9, 0.1, 0},
		{"stable, overconfident", stable, 0.7, 0.90, 0.9, 0.1, 0.655},
		{"stable, at its least", stable, 0.55, 0.99, 0.5, 0.1, 0.5},
		{"stable, underconfident", stable, 0.7, 0.5, 0.9, 0.01, 0.71},
		{"not adaptive", &fixed, 0.5, 0.99, 0.5, 0.1, 0.5},
	} {
		if got := c.m.next(c.q, c.conf, c.acc, c.eta); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: q %v, want %v", c.name, got, c.want)
		}
	}
}

func TestBoundDecays(t *testing.T) {
	m := *MaCCalStable().MaCCal
	if a, b := m.eta(20, 40), m.eta(40, 40); math.Abs(a-0.01) > 1e-12 || math.Abs(b-0.001) > 1e-12 {
		t.Errorf("η is %v at half and %v at the end, want 0.01 and 0.001", a, b)
	}
	if m.Decay = false; m.eta(40, 40) != 0.1 {
		t.Errorf("η without decay is %v, want 0.1", m.eta(40, 40))
	}
}

// TestSymmetricBeta compares mean and variance, 1/(4(2α + 1)).
func TestSymmetricBeta(t *testing.T) {
	src := philox.Source{Stream: philox.Stream{Seed: 8}}
	for _, alpha := range []float64{0.01, 0.2, 1} {
		const n = 20000
		var sum, square float64
		for range n {
			v := symmetricBeta(&src, alpha)
			if !(v >= 0 && v <= 1) {
				t.Fatalf("α %v: %v", alpha, v)
			}
			sum += v
			square += (v - 0.5) * (v - 0.5)
		}
		if want := 1 / (4 * (2*alpha + 1)); math.Abs(sum/n-0.5) > 0.02 || math.Abs(square/n-want) > 0.01 {
			t.Errorf("α %v: mean %v, variance %v; want 0.5 and %v", alpha, sum/n, square/n, want)
		}
	}
}
