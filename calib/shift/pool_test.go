package shift

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// hard are classes of the rest that the model knows badly.
func hard(y int) bool { return y > 200 && y%5 == 0 }

// manyClasses draws rows of k classes with shares q: the model says the class with probability .7, a hard one with .2,
// else one of the next four, with bands that say something of it. It returns symbol and label.
func manyClasses(rng *rand.Rand, q []float64, bands int) (says, band, y int) {
	u := rng.Float64()
	for y = 0; y < len(q)-1 && u >= q[y]; y++ {
		u -= q[y]
	}
	right := .7
	if hard(y) {
		right = .2
	}
	if rng.Float64() < right {
		return y, bands - 1 - rng.IntN(2), y
	}
	return (y + 1 + rng.IntN(4)) % len(q), rng.IntN(bands - 1), y
}

// TestPool: the classes with the most rows are kept, sums and places agree with a plain count, and a pool reads back.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, MaxClasses, MaxClasses + 1, 300, 5000} {
		rows := make([]float64, k)
		for j := range rows {
			rows[j] = float64(rng.IntN(20))
		}
		p := NewPool(rows)
		sums := make([]float64, p.Classes())
		p.Sum(sums, rows)
		want := make([]float64, p.Classes())
		least, most := math.Inf(1), 0.
		for j, x := range rows {
			want[p.Of(j)] += x
			if c := p.Class(p.Of(j)); c >= 0 {
				least = min(least, x)
				if c != j {
					t.Fatalf("K = %d: class %d is %d, which is class %d", k, j, p.Of(j), c)
				}
			} else {
				most = max(most, x)
			}
		}
		if !slices.Equal(sums, want) || least < most || p.Classes() != min(k, MaxClasses) ||
			p.Rest() != max(0, k-MaxClasses+1)*min(1, max(0, k-MaxClasses)) {
			t.Errorf("K = %d: %d classes, %d in the rest; one with %v rows is kept, one with %v not", k, p.Classes(),
				p.Rest(), least, most)
		}
		back, err := RestorePool(k, p.Kept())
		if err != nil {
			t.Fatal(err)
		}
		for j := range rows {
			if back.Of(j) != p.Of(j) {
				t.Fatalf("K = %d: class %d reads back as %d, want %d", k, j, back.Of(j), p.Of(j))
			}
		}
	}
	good := NewPool(make([]float64, 200)).Kept()
	for name, kept := range map[string][]int{"few": good[1:], "nothing": nil,
		"descending": append([]int{good[1], good[0]}, good[2:]...), "twice": append([]int{good[1]}, good[1:]...),
		"negative": append([]int{-1}, good[1:]...), "above K": append(slices.Clone(good[1:]), 200)} {
		if _, err := RestorePool(200, kept); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
	}
	if _, err := RestorePool(5, []int{1}); !errors.Is(err, ErrInput) {
		t.Errorf("a pool of few classes: %v", err)
	}
}

// TestPooledEstimates: of 400 classes some frequent ones move, against the rest as a whole. Shares of the kept classes
// and of the rest are found within their errors, the accuracy within its interval about as often as it says, and where
// nothing has moved the assumption is not rejected more often than it says; where the hard ones of the rest become
// more, it is.
func TestPooledEstimates(t *testing.T) {
	testsize.Slow(t)
	const k, bands, n, m, trials = 400, 4, 20_000, 8_000, 30
	prior, moved, within := make([]float64, k), make([]float64, k), make([]float64, k)
	for j := range prior {
		prior[j] = 1 / float64(10+j)
		moved[j], within[j] = prior[j], prior[j]
		if j%7 == 0 && j < 60 {
			moved[j] *= 3
		}
		if hard(j) {
			within[j] *= 8
		}
	}
	for _, q := range [][]float64{prior, moved, within} {
		var sum float64
		for _, x := range q {
			sum += x
		}
		for j := range q {
			q[j] /= sum
		}
	}
	for _, method := range []func(Table) (Estimate, error){BBSE, EM} {
		for name, now := range map[string][]float64{"still": prior, "moved": moved, "within": within} {
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			var covered, rejected, off, of int
			for range trials {
				labels := make([]float64, k)
				type row struct{ says, band, y int }
				var ref []row
				for range n {
					s, b, y := manyClasses(rng, prior, bands)
					ref, labels[y] = append(ref, row{s, b, y}), labels[y]+1
				}
				p := NewPool(labels)
				kp := p.Classes()
				table := Table{K: kp, Joint: make([]float64, kp*bands*kp), Now: make([]float64, kp*bands)}
				for i := range kp * bands {
					table.Says = append(table.Says, i/bands)
				}
				var wrong, rows, right float64
				for _, r := range ref {
					table.Joint[(p.Of(r.says)*bands+r.band)*kp+p.Of(r.y)]++
					if p.Class(p.Of(r.y)) < 0 {
						rows++
						if p.Class(p.Of(r.says)) < 0 && r.says != r.y {
							wrong++
						}
					}
				}
				for range m {
					s, b, y := manyClasses(rng, now, bands)
					table.Now[p.Of(s)*bands+b]++
					if s == y {
						right += 1. / m
					}
				}
				e, err := method(table)
				if err != nil {
					t.Fatal(err)
				}
				p.Mend(&e, wrong, rows)
				if e.Lo <= right && right <= e.Hi {
					covered++
				}
				if e.Fit.P < .01 {
					rejected++
				}
				truth := make([]float64, kp)
				p.Sum(truth, now)
				for j, x := range truth {
					if of++; math.Abs(e.Shares[j]-x) > 3*e.SE[j]+1e-3 {
						off++
					}
				}
				if e.Assumption != PooledAssumption {
					t.Fatalf("assumption %q", e.Assumption)
				}
			}
			t.Logf("%s: %d of %d accuracies covered, %d rejected, %d of %d shares off", name, covered, trials, rejected,
				off, of)
			if name == "within" {
				if rejected < trials*9/10 {
					t.Errorf("classes of the rest moved: rejected %d times of %d", rejected, trials)
				}
				continue
			}
			if covered < trials*8/10 || rejected > trials/5 || off > of/50 {
				t.Errorf("%s: %d of %d accuracies covered, %d rejected, %d of %d shares off", name, covered, trials,
					rejected, off, of)
			}
		}
	}
}
