package metric

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

const (
	// smoothCells is the number of grid cells on [0,1] that the residuals are put on before they are smoothed.
	// 1,024 cells are within 8e-6 of the raw data; with 4,096 the grid's own width (2.4e-4) stays well below
	// any bandwidth that finite data reaches, and a transform still costs a fraction of a millisecond.
	smoothCells = 4096
	// smoothTol ends the search for the bandwidth, far below the error of the grid.
	smoothTol = 1e-9
)

// SmECE returns the smooth calibration error. With K_σ the Gaussian kernel reflected at 0 and 1,
//
//	r_σ(t) = 1/W Σ_i w_i K_σ(t, c_i)·(a_i - c_i),  smECE_σ = ∫₀¹ |r_σ(t)| dt,  smECE = smECE_σ* = σ*
//
// where σ* is the fixed point, which exists once since smECE_σ does not rise with σ. No bins, no bandwidth to
// choose, and continuous in c. w may be nil; in [0,1]; NaN where there is no row.
//
// The residuals are shared between the two neighbouring points of a grid of 4,097. The reflected Gaussian is the
// heat kernel with insulated ends, hence diagonal in the cosine basis: each σ is one cosine transform.
// Reference: Błasiok and Nakkiran, Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing, ICLR 2024.
func SmECE(c []float64, a []bool, w []float64) float64 {
	checkLengths(c, a, w)
	mass := make([]float64, smoothCells+1)
	var total float64
	for i, ci := range c {
		wi := weight(w, i)
		r := -ci * wi
		if a[i] {
			r += wi
		}
		total += wi
		addMass(mass, ci, r)
	}
	return SmECEGrid(mass, total)
}

// addMass shares r between the grid points beside c in [0,1], keeping its sum and its mean place.
func addMass(mass []float64, c, r float64) {
	x := c * float64(len(mass)-1)
	j := min(max(int(x), 0), len(mass)-2)
	f := x - float64(j)
	mass[j] += r * (1 - f)
	mass[j+1] += r * f
}

// SmECEGrid is SmECE from residuals that are already summed on a grid: mass[j] is Σ w·(a - c) of the rows at
// c = j/(len(mass)-1), total is W. Its resolution is that of the grid. It panics if len(mass) < 3.
func SmECEGrid(mass []float64, total float64) float64 {
	return newSmoother(len(mass)).fixedPoint(mass, total, smoothTol)
}

// SmECECells is SmECE of rows that are known by cell: each counts as one residual at its mean confidence. Moving a
// residual by h moves smECE_σ, and with it the fixed point, by no more than √(2/π)·h/σ of its weight: with cells of
// width h
//
//	|smECE(cells) - smECE(rows)| ≤ √(2/π) · h/smECE · Σ_i w_i |a_i - c_i| / W
//
// and much less in practice, since the first moments within a cell cancel: give the right and the wrong rows of a cell
// as two cells where their sums are known apart.
func SmECECells(cells []Bin) float64 {
	return newCellSmoother(smoothCells).fixedPoint(cells, smoothTol)
}

// cellSmoother computes smECE of cells, again and again.
type cellSmoother struct {
	smoother *smoother
	mass     []float64
}

func newCellSmoother(n int) *cellSmoother {
	return &cellSmoother{newSmoother(n + 1), make([]float64, n+1)}
}

func (s *cellSmoother) ece(cells []Bin) float64 { return s.fixedPoint(cells, resampleTol) }

func (s *cellSmoother) fixedPoint(cells []Bin, tol float64) float64 {
	clear(s.mass)
	var total float64
	for _, b := range cells {
		if b.W > 0 {
			addMass(s.mass, b.Conf(), b.SumA-b.SumC)
			total += b.W
		}
	}
	return s.smoother.fixedPoint(s.mass, total, tol)
}

// fixedPoint returns σ* of the residuals, to tol.
func (s *smoother) fixedPoint(mass []float64, total, tol float64) float64 {
	if !(total > 0) {
		return math.NaN()
	}
	s.load(mass, total)
	// smECE_σ - σ falls: bisection between bounds that the secant narrows quickly (Illinois variant).
	lo, hi := 0.0, 1.0
	flo, fhi := s.ece(0), s.ece(1)-1
	if flo <= 0 || fhi >= 0 {
		return max(0, min(1, flo))
	}
	side := 0
	for hi-lo > tol {
		x := lo + (hi-lo)*flo/(flo-fhi)
		f := s.ece(x) - x
		switch {
		case math.Abs(f) < tol:
			return x
		case f > 0:
			lo, flo = x, f
			if side == 1 {
				fhi /= 2
			}
			side = 1
		default:
			hi, fhi = x, f
			if side == -1 {
				flo /= 2
			}
			side = -1
		}
	}
	return (lo + hi) / 2
}

// smoother evaluates smECE_σ from the cosine coefficients of the residuals.
type smoother struct {
	dct       *fourier.DCT
	coef      []float64 // C_k = Σ_j mass_j cos(πjk/N) / W
	work, out []float64
}

func newSmoother(n int) *smoother {
	return &smoother{dct: fourier.NewDCT(n), coef: make([]float64, n), work: make([]float64, n),
		out: make([]float64, n)}
}

func (s *smoother) load(mass []float64, total float64) {
	n := len(mass)
	// The transform counts the inner points twice and the two ends once.
	for j, m := range mass {
		s.work[j] = m / total / 2
	}
	s.work[0] *= 2
	s.work[n-1] *= 2
	s.dct.Transform(s.coef, s.work)
}

// ece returns ∫ |r_σ|, by the trapezoid rule, of r_σ(t) = C_0 + 2 Σ_k C_k exp(-σ²π²k²/2) cos(πkt).
func (s *smoother) ece(sigma float64) float64 {
	const nothing = 50 // e^-50 of |C_k| ≤ 1 is below rounding
	n := len(s.coef) - 1
	clear(s.work)
	for k, c := range s.coef {
		x := sigma * math.Pi * float64(k)
		if x*x/2 > nothing {
			break
		}
		s.work[k] = c * math.Exp(-x*x/2)
	}
	s.dct.Transform(s.out, s.work)
	sum := (math.Abs(s.out[0]) + math.Abs(s.out[n])) / 2
	for _, r := range s.out[1:n] {
		sum += math.Abs(r)
	}
	return sum / float64(n)
}
