package head

import (
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/philox"
)

// forward is the definition, in float64, for one row.
func forward(h *Head, x []float64) []float64 {
	for i, l := range h.Layers {
		out := make([]float64, l.Out)
		for o := range out {
			out[o] = float64(l.B[o])
			for j, v := range x {
				out[o] += float64(l.W[o*l.In+j]) * v
			}
			if i < len(h.Layers)-1 {
				out[o] = math.Max(0, out[o])
			}
		}
		x = out
	}
	return x
}

func someRows(n, d int) []float32 {
	src := philox.Source{Stream: philox.Stream{Seed: 11}}
	x := make([]float32, n*d)
	for i := range x {
		x[i] = float32(2*src.Float64() - 1)
	}
	return x
}

// TestForwardBackward: logits against the definition, and the gradient of Σ u·z against its differences.
func TestForwardBackward(t *testing.T) {
	const n, d, k = 6, 5, 3
	for name, h := range map[string]*Head{"linear": FreshLinear(d, k, 1), "bottleneck": Bottleneck(d, 8, k, 2)} {
		x, u := someRows(n, d), someRows(n, k)
		value := func() (sum float64) {
			for i := range n {
				row := make([]float64, d)
				for j := range row {
					row[j] = float64(x[i*d+j])
				}
				for c, z := range forward(h, row) {
					sum += z * float64(u[i*k+c])
				}
			}
			return sum
		}
		p := NewPass(h, n+4, Gonum{})
		z := p.Forward(h, x, n)
		var got float64
		for i, v := range z {
			got += float64(v) * float64(u[i])
		}
		if want := value(); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: Σ u·z is %v, want %v", name, got, want)
		}
		copy(p.Grad(n), u)
		grad := h.Clone()
		p.Backward(h, grad, x, n)
		for i, w := range h.Params() {
			for j := range w {
				keep := w[j]
				const step = 1.0 / 1024
				w[j] = keep + step
				up := value()
				w[j] = keep - step
				want := (up - value()) / (2 * step)
				w[j] = keep
				// A ReLU may change inside the step; the seeds are such that none does.
				if g := float64(grad.Params()[i][j]); math.Abs(g-want) > 1e-4 {
					t.Errorf("%s: gradient %d of tensor %d: %v, want %v", name, j, i, g, want)
				}
			}
		}
	}
}

// TestReLU: values and gradients at both signs, both zeros and NaN, which stays one.
func TestReLU(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	x := []float32{2, -3, 0, negative, 1e-45, -1e-45}
	ReLU(x)
	for i, want := range []float32{2, 0, 0, 0, 1e-45, 0} {
		if x[i] != want || math.Signbit(float64(x[i])) {
			t.Errorf("value %d: %v, want %v", i, x[i], want)
		}
	}
	g := []float32{-5, 5, 5, -5, 7, 7}
	ReLUGrad(g, x, g)
	for i, want := range []float32{-5, 0, 0, 0, 7, 0} {
		if g[i] != want {
			t.Errorf("gradient %d: %v, want %v", i, g[i], want)
		}
	}
	nan := []float32{float32(math.NaN()), float32(math.Copysign(math.NaN(), -1))}
	if ReLU(nan); nan[0] == nan[0] || nan[1] == nan[1] {
		t.Errorf("NaN became %v", nan)
	}
}

func TestNoAllocation(t *testing.T) {
	const n, d, k = 32, 16, 10
	h := Bottleneck(d, 16, k, 2)
	grad, p, x := h.Clone(), NewPass(h, n, Gonum{}), someRows(n, d)
	if a := testing.AllocsPerRun(10, func() {
		p.Forward(h, x, n)
		p.Backward(h, grad, x, n)
	}); a != 0 {
		t.Errorf("%v allocations a batch, want 0", a)
	}
}

func TestInitialWeights(t *testing.T) {
	h := Bottleneck(100, 50, 10, 3)
	var sum, square float64
	for _, v := range h.Layers[0].W {
		if math.Abs(float64(v)) > 0.1 {
			t.Fatalf("weight %v, want within ±1/√100", v)
		}
		sum += float64(v)
		square += float64(v) * float64(v)
	}
	n := float64(len(h.Layers[0].W))
	if math.Abs(sum/n) > 0.005 || math.Abs(square/n-0.01/3) > 2e-4 {
		t.Errorf("mean %v, mean square %v; want 0 and %v", sum/n, square/n, 0.01/3)
	}
	if again := Bottleneck(100, 50, 10, 3); again.Layers[1].W[7] != h.Layers[1].W[7] {
		t.Error("the same seed gives other weights")
	}
	if other := Bottleneck(100, 50, 10, 4); other.Layers[1].W[7] == h.Layers[1].W[7] {
		t.Error("another seed gives the same weights")
	}
	if h.Layers[0].W[0] == h.Layers[1].W[0]*float32(math.Sqrt(50)/10) {
		t.Error("layers share their words")
	}
}

func TestShapes(t *testing.T) {
	l, err := Linear([]float32{1, 2, 3, 4, 5, 6}, []float32{0, 1})
	if err != nil || l.D() != 3 || l.K() != 2 || l.Check() != nil {
		t.Fatalf("%v, %v", l, err)
	}
	if s := l.Scaled(0.5); s.Layers[0].W[5] != 3 || s.Layers[0].B[1] != 1 || l.Layers[0].W[5] != 6 {
		t.Errorf("scaled %v of %v, want weights halved, biases and the original kept", s.Layers[0], l.Layers[0])
	}
	h := Bottleneck(3, 4, 2, 1).Layers
	if s := Bottleneck(3, 4, 2, 1).Tempered(2).Layers; s[1].B[0] != h[1].B[0]/2 || s[0].W[3] != h[0].W[3] {
		t.Error("a temperature of 2 does not halve the last layer alone")
	}
	_, err = Linear([]float32{1, 2, 3}, []float32{0, 1})
	if err == nil || !strings.Contains(err.Error(), "3 weights and 2 biases") {
		t.Errorf("error %v", err)
	}
	for want, edit := range map[string]func(*Head){
		"layer 1 takes 7 values": func(h *Head) { h.Layers[1].In = 7; h.Layers[1].W = make([]float32, 14) },
		"layer 0: 3 weights":     func(h *Head) { h.Layers[0].W = h.Layers[0].W[:3] },
		"parameter 2 is NaN":     func(h *Head) { h.Layers[1].W[2] = float32(math.NaN()) },
		"no layers":              func(h *Head) { h.Layers = nil },
	} {
		h := Bottleneck(3, 4, 2, 1)
		edit(h)
		if err := h.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
