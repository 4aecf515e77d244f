package calibrator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// confused returns rows whose labels follow softmax(M z) for an M with confusions between neighbouring classes.
func confused(n, k int, seed uint64) ([]float64, []int32) {
	rng := rand.New(rand.NewPCG(seed, 4))
	z, y := make([]float64, n*k), make([]int32, n)
	for i := range y {
		row := z[i*k : (i+1)*k]
		for j := range row {
			row[j] = 2 * rng.NormFloat64()
		}
		row[rng.IntN(k)] += 6
		best := math.Inf(-1)
		for j := range row {
			if g := 0.5*row[j] + 0.3*row[(j+1)%k] - math.Log(rng.ExpFloat64()); g > best {
				best, y[i] = g, int32(j)
			}
		}
	}
	return z, y
}

// slowMatrixLoss is the objective by its definition.
func slowMatrixLoss(m matrixParams, x []float64, y []int32, w []float64, reg ODIR) float64 {
	k := len(m.B)
	var sum, total, off, b2 float64
	u := make([]float64, k)
	for i, yi := range y {
		m.affine(u, x[i*k:(i+1)*k])
		var s float64
		for _, v := range u {
			s += math.Exp(v - u[yi])
		}
		sum += w[i] * math.Log(s)
		total += w[i]
	}
	for j := range k {
		for l := range k {
			if j != l {
				off += m.W[j*k+l] * m.W[j*k+l]
			}
		}
		b2 += m.B[j] * m.B[j]
	}
	d, mean, spread := make([]float64, k), 0.0, 0.0
	for l := range k {
		d[l] = m.W[l*k+l]
		for j := range k {
			if j != l {
				d[l] -= m.W[j*k+l] / float64(k-1)
			}
		}
		mean += d[l] / float64(k)
	}
	for _, v := range d {
		spread += (v - mean) * (v - mean)
	}
	return sum/total + reg.OffDiagonal/float64(k*(k-1))*off + (reg.Intercept*b2+reg.Diagonal*spread)/float64(k)
}

// TestMatrixIsTheMinimum steps from the fit in many directions, for every way to make coordinates, and with penalties
// from none to speak of to strong.
func TestMatrixIsTheMinimum(t *testing.T) {
	testsize.Slow(t)
	for _, c := range []struct {
		n, k int
		reg  ODIR
	}{
		{700, 5, ODIR{}}, {700, 5, ODIR{OffDiagonal: 1e-6, Intercept: 1e-6}},
		{700, 5, ODIR{OffDiagonal: 1e4, Intercept: 1e3}},
		{700, 5, ODIR{OffDiagonal: 0.1, Intercept: 1e-6, Diagonal: 30}},
		{300, 33, ODIR{}}, {120, blockClasses + 1, ODIR{}},
	} {
		z, y := confused(c.n, c.k, 2)
		w := make([]float64, c.n)
		for i := range w {
			w[i] = float64(1 + i%3)
		}
		f, r, err := FitDirichlet(NewData(z, c.k, y, w), c.reg, Options{})
		if err != nil || !r.Converged {
			t.Fatalf("%+v: %+v, %v", c, r, err)
		}
		reg, _ := c.reg.withDefaults(c.n, c.k)
		s, _ := newSample("test", NewData(z, c.k, y, w), Options{})
		x := s.logProbs()
		at := slowMatrixLoss(f.p, x, y, w, reg)
		rng := rand.New(rand.NewPCG(1, 1))
		for _, size := range []float64{1e-3, 1e-2, 0.1} {
			for trial := range 12 {
				to := matrixParams{W: append([]float64(nil), f.p.W...), B: append([]float64(nil), f.p.B...)}
				j := rng.IntN(c.k)
				switch trial % 3 {
				case 0: // all of a class
					for l := range c.k {
						to.W[j*c.k+l] += size * rng.NormFloat64()
					}
				case 1: // one weight
					to.W[j*c.k+rng.IntN(c.k)] += size * rng.NormFloat64()
				default: // what softmax does not see
					l := rng.IntN(c.k)
					for j := range c.k {
						to.W[j*c.k+l] += size
					}
					to.B[j] += size
				}
				const rounding = 2e-8 // the fit ends where it falls by 1e-9 in five iterations
				if v := slowMatrixLoss(to, x, y, w, reg); v < at-rounding {
					t.Errorf("n=%d K=%d %+v: %.3g lower by a step of %g", c.n, c.k, c.reg, at-v, size)
				}
			}
		}
	}
}

func TestLeastGradientIsTheTranspose(t *testing.T) {
	const k = 4
	rng := rand.New(rand.NewPCG(1, 7))
	u, v := make([]float64, k*k+k), make([]float64, k*k+k)
	for i := range u {
		u[i], v[i] = rng.NormFloat64(), rng.NormFloat64()
	}
	pu, pv := append([]float64(nil), u...), append([]float64(nil), v...)
	least(pu, k)
	leastGradient(pv, k)
	var a, b float64
	for i := range u {
		a, b = a+pu[i]*v[i], b+u[i]*pv[i]
	}
	if math.Abs(a-b) > 1e-12 {
		t.Errorf("v·Pu = %g, Pᵀv·u = %g", a, b)
	}
}

// TestDirichletHoldsTheDiagonal: all fitted rows of class 0 are certain, ln p_0 = 0, so that nothing but a penalty
// keeps W_00 from growing; a row of the class that is not certain must not be impossible then.
func TestDirichletHoldsTheDiagonal(t *testing.T) {
	const k = 3
	rng := rand.New(rand.NewPCG(5, 5))
	var z []float64
	var y []int32
	for i := range 600 {
		label := i % k
		row := make([]float64, k)
		for j := range row {
			row[j] = 1.5 * rng.NormFloat64()
		}
		row[0] -= 4
		if row[label] += 1; label == 0 {
			row[0] += 60
		}
		z, y = append(z, row...), append(y, int32(label))
	}
	c, r, err := FitDirichlet(NewData(z, k, y, nil), ODIR{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.p.W[0]; !(w < 3) || len(r.Warnings) != 0 {
		t.Errorf("W_00 = %g, warnings %q, want below 3 and none", w, r.Warnings)
	}
	p := make([]float64, k)
	if c.Apply(p, []float64{-3, 0, 0}); !(p[0] > 1e-4) {
		t.Errorf("p_0 = %g of a row that has it at %g", p[0], 1/(1+2*math.Exp(3)))
	}
	c, r, err = FitDirichlet(NewData(z, k, y, nil), ODIR{OffDiagonal: 1, Intercept: 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.p.W[0]; w < 3 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "class 0") {
		t.Errorf("without a penalty of the diagonal: W_00 = %g, warnings %q, want one", w, r.Warnings)
	}
}

// TestManyClassesTakeFewPasses: the number of passes hardly depends on K, nor on the inputs' common mean, which those
// of Dirichlet have, all far below 0.
func TestManyClassesTakeFewPasses(t *testing.T) {
	const most = 80
	for _, k := range []int{blockClasses, blockClasses + 1} {
		z, y := confused(800, k, 6)
		_, r, err := FitDirichlet(NewData(z, k, y, nil), ODIR{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Converged || r.Iterations > most {
			t.Errorf("%d classes: converged %v after %d passes, want at most %d", k, r.Converged, r.Iterations, most)
		}
	}
}
