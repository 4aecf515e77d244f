package serve

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/trainer/head"
)

// TestLogits holds the logits of rows against plain sums in float64, and against the same rows in another order.
func TestLogits(t *testing.T) {
	for name, h := range map[string]*head.Head{
		"linear":     head.FreshLinear(33, 7, 1),
		"bottleneck": head.Bottleneck(20, 11, 5, 2),
		"wide":       head.Bottleneck(3, 40, 2, 3),
	} {
		s, err := New(h)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		var first [][]float32
		var rows [][]float32
		for range 20 {
			x := make([]float32, h.D())
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			z := make([]float32, h.K())
			s.Logits(z, x)
			want := plain(h, x)
			for k := range z {
				if math.Abs(float64(z[k])-want[k]) > 1e-5 {
					t.Fatalf("%s: logit %d: got %v, want %v", name, k, z[k], want[k])
				}
			}
			first, rows = append(first, z), append(rows, x)
		}
		for i := len(rows) - 1; i >= 0; i-- {
			z := make([]float32, h.K())
			if s.Logits(z, rows[i]); !slices.Equal(z, first[i]) {
				t.Fatalf("%s: row %d: got %v the second time, %v the first", name, i, z, first[i])
			}
		}
	}
}

func plain(h *head.Head, x []float32) []float64 {
	in := make([]float64, len(x))
	for i, v := range x {
		in[i] = float64(v)
	}
	for n, l := range h.Layers {
		out := make([]float64, l.Out)
		for o := range out {
			out[o] = float64(l.B[o])
			for i, v := range in {
				out[o] += float64(l.W[o*l.In+i]) * v
			}
			if n < len(h.Layers)-1 {
				out[o] = max(out[o], 0)
			}
		}
		in = out
	}
	return in
}

func TestNewRefuses(t *testing.T) {
	bad := head.FreshLinear(3, 2, 1)
	bad.Layers[0].W[1] = float32(math.NaN())
	if _, err := New(bad); err == nil {
		t.Error("a weight that is no number: got no error")
	}
}

// TestWhereRowsLie: neither where a row nor where the weights lie in memory makes a difference of a bit.
func TestWhereRowsLie(t *testing.T) {
	for _, d := range []int{5, 33, 64} {
		h := head.Bottleneck(d, 19, 10, 5)
		var want []float32
		for shift := range 16 {
			moved := *h
			moved.Layers = slices.Clone(h.Layers)
			for i := range moved.Layers {
				moved.Layers[i].W = at(shift%5, h.Layers[i].W)
			}
			s, err := New(&moved)
			if err != nil {
				t.Fatal(err)
			}
			x := at(shift, make([]float32, d))
			r := rand.New(rand.NewPCG(3, uint64(d)))
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			z := make([]float32, h.K())
			s.Logits(z, x)
			if want == nil {
				want = z
			}
			if !slices.Equal(z, want) {
				t.Fatalf("D = %d: a row %d numbers on has logits %v, want %v", d, shift, z, want)
			}
		}
	}
}

// at is v behind so many numbers of an allocation.
func at(shift int, v []float32) []float32 {
	out := make([]float32, shift+len(v))[shift:]
	copy(out, v)
	return out
}
