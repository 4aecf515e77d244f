package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/plumbline/plumbline/arrowio/npy"
)

const (
	insects = "drift_insects_gradual_bal.npz"
	gas     = "drift_gas_sensor_b1-6_8_9.npz"
	elec2   = "drift_elec2.npz"
)

// readFrozen reads a stream of features and labels in time order, fits a linear softmax head to its first fifth, and
// returns the head's logits on what follows: a model that never learns again.
func readFrozen(dir, file string) (*source, error) {
	a, err := npy.ReadArchive(filepath.Join(dir, file), "X", "y")
	if err != nil {
		return nil, err
	}
	x, y, d := a["X"].F32, a["y"].Int, a["X"].Columns()
	n := len(y)
	if n == 0 || len(x) != n*d {
		return nil, fmt.Errorf("%s: %v features for %d labels", file, a["X"].Shape, n)
	}
	k := 0
	for _, c := range y {
		k = max(k, int(c)+1)
	}
	from := 0
	if file == elec2 {
		from = 1 // the date: a model that learned it extrapolates
	}
	h := newHead(d-from, k)
	features := func(i int) []float32 { return x[i*d+from : (i+1)*d] }
	first := n / 5
	h.standardise(first, features)
	h.fit(first, features, y)
	s := &source{name: file[len("drift_") : len(file)-len(".npz")], k: k, labels: y[first:]}
	z := make([]float64, k)
	for i := first; i < n; i++ {
		h.logits(z, features(i))
		for _, v := range z {
			s.z = append(s.z, float32(v))
		}
	}
	return s, nil
}

// head is logits = W·(x - mean)/sd + b, W row-major k×d.
type head struct {
	d, k     int
	mean, sd []float64
	w, b     []float64
	scaled   []float64
}

func newHead(d, k int) *head {
	return &head{d: d, k: k, mean: make([]float64, d), sd: make([]float64, d), w: make([]float64, k*d),
		b: make([]float64, k), scaled: make([]float64, d)}
}

func (h *head) standardise(n int, x func(int) []float32) {
	for i := range n {
		for j, v := range x(i) {
			h.mean[j] += float64(v) / float64(n)
		}
	}
	for i := range n {
		for j, v := range x(i) {
			h.sd[j] += (float64(v) - h.mean[j]) * (float64(v) - h.mean[j]) / float64(n)
		}
	}
	for j, v := range h.sd {
		h.sd[j] = max(math.Sqrt(v), 1e-9)
	}
}

func (h *head) logits(z []float64, x []float32) {
	for j, v := range x {
		// What was never seen in the first fifth counts as the farthest that may be.
		h.scaled[j] = min(max((float64(v)-h.mean[j])/h.sd[j], -10), 10)
	}
	for c := range z {
		z[c] = h.b[c]
		for j, v := range h.scaled {
			z[c] += h.w[c*h.d+j] * v
		}
	}
}

// fit is plain SGD on cross-entropy, row by row, with a rate that falls to 0.
func (h *head) fit(n int, x func(int) []float32, y []int32) {
	const epochs, rate = 30, .01
	r := rand.New(rand.NewPCG(7, 3))
	z := make([]float64, h.k)
	for e := range epochs {
		eta := rate * (1 - float64(e)/epochs)
		for _, i := range r.Perm(n) {
			h.logits(z, x(i))
			top, sum := z[0], 0.0
			for _, v := range z {
				top = max(top, v)
			}
			for c, v := range z {
				z[c] = math.Exp(v - top)
				sum += z[c]
			}
			for c := range z {
				g := z[c]/sum - float64(step(int(y[i]) == c))
				h.b[c] -= eta * g
				for j, v := range h.scaled {
					h.w[c*h.d+j] -= eta * g * v
				}
			}
		}
	}
}
