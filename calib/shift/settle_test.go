package shift

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestBBSESettles: the shares are those at which the weights of their own noise give them again, also where a plain
// iteration is slow or goes to and fro; where there are none, no estimate is given.
func TestBBSESettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	unsettled := 0
	for c := range 1000 {
		table := hardTable(rng)
		d, err := newModel(&table)
		if err != nil {
			continue
		}
		e, err := BBSE(table)
		if errors.Is(err, ErrInput) {
			unsettled++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		q := make([]float64, len(d.classes))
		for x, j := range d.classes {
			q[x] = e.Shares[j]
		}
		s, err := d.solve(d.noise(q))
		if err != nil {
			t.Fatal(err)
		}
		for x, v := range s.shares(d) {
			if math.Abs(v-q[x]) > 1e-5 {
				t.Fatalf("case %d: class %d has a share of %v, by its own noise %v", c, d.classes[x], q[x], v)
			}
		}
	}
	if unsettled > 10 {
		t.Errorf("%d of 1000 do not settle", unsettled)
	}
}

// hardTable has many classes and symbols for few rows, of a model that confuses them, and rows now that are no mixture.
func hardTable(rng *rand.Rand) Table {
	k, bins := 2+rng.IntN(20), 1+rng.IntN(8)
	n, m, sharp := math.Exp(rng.Float64()*9+3), math.Exp(rng.Float64()*9+3), rng.Float64()
	symbols := k * bins
	t := Table{K: k, Says: make([]int, symbols), Joint: make([]float64, symbols*k), Now: make([]float64, symbols)}
	share, sum := make([]float64, k), 0.0
	for j := range share {
		share[j] = math.Pow(rng.ExpFloat64(), 4)
		sum += share[j]
	}
	for i := range t.Says {
		t.Says[i] = i / bins
		for j := range k {
			p := (1 - sharp) / float64(symbols)
			if i/bins == j {
				p += sharp / float64(bins)
			}
			p *= rng.ExpFloat64()
			t.Joint[i*k+j] = math.Floor(n/float64(k)*p + rng.Float64())
			t.Now[i] += math.Floor(m*p*share[j]/sum*(.3+rng.ExpFloat64()) + rng.Float64())
		}
	}
	return t
}

// TestBBSEOfManyClasses: shares of many classes that do not settle are given up soon.
func TestBBSEOfManyClasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		table := hardTable(rng)
		if _, err := BBSE(table); err == nil || !strings.Contains(err.Error(), "within 200 steps") {
			continue
		}
		if _, err := BBSE(besides(table, 100)); err != nil {
			if !strings.Contains(err.Error(), "within 100 steps") {
				t.Errorf("got %v, want 100 steps", err)
			}
			return
		}
	}
	t.Error("all tables settle")
}

// besides returns the table with n more classes, which have symbols of their own.
func besides(t Table, n int) Table {
	out := t
	k, symbols := t.K+n, len(t.Says)+n
	out.K, out.Says = k, slices.Clone(t.Says)
	out.Joint, out.Now = make([]float64, symbols*k), append(slices.Clone(t.Now), make([]float64, n)...)
	for i := range t.Says {
		copy(out.Joint[i*k:], t.Joint[i*t.K:(i+1)*t.K])
	}
	for x := range n {
		i := len(t.Says) + x
		out.Says = append(out.Says, t.K+x)
		out.Joint[i*k+t.K+x], out.Now[i] = 50, 50
	}
	return out
}
