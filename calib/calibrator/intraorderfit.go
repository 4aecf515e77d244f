package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/vexp"
)

const (
	// orderKnots is J, the knots that a fit asks for.
	orderKnots = 8
	// orderRoughness is σ, the standard deviation that the prior gives to the change of the slope from one knot to the
	// next, as a share of 1/T. Of 1, 0.3 and 0.1 it had the lowest NLL on other rows for fits to 200, 1,000 and 5,000
	// rows of four real networks; with 1, fits to 1,000 rows were worse than one temperature.
	orderRoughness = 0.1
	// orderReach is the gap, in units of T, beyond which a class has no weight in the NLL (e⁻⁴⁰).
	orderReach = 40.0
	// orderCells is the resolution of the knots within that reach.
	orderCells = 4096
	// orderTail is the probability mass that the last knot leaves beyond it.
	orderTail = 0.005
)

// FitIntraOrderPreserving fits the slopes by the mean NLL in nats and a prior that the slope changes slowly,
//
//	1/W Σ_i w_i [ln Σ_k exp(u_ik) - u_iy] + T²/(2nσ²) Σ_j (s_{j+1} - s_j)²,  u_ik = -Σ_j s_j B_j(max z_i - z_ik)
//
// where B_j is the integral of the j-th hat function and σ = 0.1. It is convex in s. T is that of FitTemperature, where
// it starts, so the NLL of the fitted rows never ends above that of one temperature. Eight knots: 0 and equal steps of
// the probability that softmax(z/T) gives to the classes below the top one. L-BFGS on x with ln s_j = lo + (hi-lo)
// σ(x_j), which holds the slopes in [1/MaxTemperature, 1/MinTemperature]; the report says when one ends there.
// Errors are those of FitTemperature, and logits beyond ±1e6 are an error.
func FitIntraOrderPreserving[T kernel.Float](d Data[T], opts Options) (*IntraOrderPreserving, Report, error) {
	s, err := newSample("intra_order_preserving", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	ts, tr, err := s.temperatureStart()
	if err != nil {
		return nil, Report{}, err
	}
	s.report.Flat = tr.Flat
	start := intraOrderParams{Knots: s.gapKnots(ts.T())}
	x := make([]float64, len(start.Knots))
	for j := range x {
		x[j] = betaInverse(1 / ts.T())
		start.Slopes = append(start.Slopes, 1/ts.T())
	}
	x, s.report.Iterations, s.report.Converged = minimise(s.intraOrderLoss(start.Knots, ts.T()), x)
	fitted := intraOrderParams{Knots: start.Knots, Slopes: make([]float64, len(x))}
	const near = 1e-3 // of the bound, where the slope in x has vanished
	for j, v := range x {
		b, _ := betaOf(v)
		b = min(1/MinTemperature, max(1/MaxTemperature, b))
		fitted.Slopes[j] = b
		if b > (1-near)/MinTemperature || b < (1+near)/MaxTemperature {
			s.report.OnBound = true
			s.warn("slope at gap %.4g: %.4g, a bound", fitted.Knots[j], b)
		}
	}
	c := &IntraOrderPreserving{p: fitted}
	// A start on a bound of T was moved off it, so the minimiser may have missed the better end.
	if one := (&IntraOrderPreserving{p: start}); s.nll(one) < s.nll(c) {
		c, s.report.OnBound = one, tr.OnBound
		if tr.OnBound {
			s.warn("temperature %g, a bound", ts.T())
		}
	}
	return finish(s, c, len(x))
}

// betaOf is 1/T at x and its derivative.
func betaOf(x float64) (b, slope float64) {
	lo, hi := -math.Log(MaxTemperature), -math.Log(MinTemperature)
	g := sigmoid(x)
	b = math.Exp(lo + (hi-lo)*g)
	return b, b * (hi - lo) * g * (1 - g)
}

// betaInverse is the x of betaOf at b, kept off the bounds, where there is no slope in x.
func betaInverse(b float64) float64 {
	lo, hi := -math.Log(MaxTemperature), -math.Log(MinTemperature)
	share := min(0.99, max(0.01, (math.Log(b)-lo)/(hi-lo)))
	return math.Log(share / (1 - share))
}

// gapKnots returns 0 and the quantiles of the gaps below the maximum, each gap with the probability of its class.
func (s *sample) gapKnots(t float64) []float64 {
	cells := make([]float64, orderCells)
	p := make([]float64, s.k)
	var total float64
	for i := range s.y {
		row := s.row(i)
		softmax(p, row, t)
		top := row[argmax(row)]
		for k, v := range row {
			g := (top - v) / (orderReach * t)
			if v == top || g >= 1 {
				continue
			}
			m := s.w[i] / s.total * p[k]
			cells[int(g*orderCells)] += m
			total += m
		}
	}
	knots := []float64{0}
	var below float64
	for c, m := range cells {
		below += m
		next := (1 - orderTail) * total * float64(len(knots)) / (orderKnots - 1)
		if m > 0 && below >= next && len(knots) < orderKnots {
			knots = append(knots, float64(c+1)/orderCells*orderReach*t)
		}
	}
	return knots
}

// orderLoss is the objective in x, with slopes betaOf(x).
type orderLoss struct {
	s *sample
	q intraOrderParams
	t float64
	// piece has the piece of every cell of the gap; knots lie on the edges of cells.
	piece [orderCells + 1]uint8
	at    []float64 // drops at the knots
	bend  []float64 // (s_{j+1} - s_j)/(2 width), 0 in the last piece
	rate  []float64 // ds/dx
	ds    []float64
	p, h  []float64    // of a row: probabilities, distances from the knot below
	j     []uint8      // of a row: pieces
	r     [][3]float64 // Σ r, Σ r h, Σ r h² by piece, r = w (p - 1[label])/W
}

// intraOrderLoss returns the objective for knots on the edges of the cells of gapKnots.
func (s *sample) intraOrderLoss(knots []float64, t float64) objective {
	n := len(knots)
	f := &orderLoss{s: s, t: t, q: intraOrderParams{Knots: knots, Slopes: make([]float64, n)},
		at: make([]float64, n), bend: make([]float64, n), rate: make([]float64, n), ds: make([]float64, n),
		p: make([]float64, s.k), h: make([]float64, s.k), j: make([]uint8, s.k), r: make([][3]float64, n)}
	for c := range f.piece {
		f.piece[c] = uint8(f.q.piece((float64(c) + 0.5) / orderCells * orderReach * t))
	}
	return f.eval
}

func (f *orderLoss) eval(grad, x []float64) float64 {
	n, q := len(x), f.q
	for j, v := range x {
		q.Slopes[j], f.rate[j] = betaOf(v)
	}
	q.dropsAtKnots(f.at)
	for j := range n - 1 {
		f.bend[j] = (q.Slopes[j+1] - q.Slopes[j]) / (2 * (q.Knots[j+1] - q.Knots[j]))
	}
	clear(f.ds)
	clear(f.r)
	var sum float64
	for i, y := range f.s.y {
		sum += f.s.w[i] * f.row(f.s.row(i), int(y), f.s.w[i]/f.s.total)
	}
	f.gather()
	value := sum / f.s.total
	stiff := f.t * f.t / (2 * float64(f.s.n) * orderRoughness * orderRoughness)
	for j := 1; j < n; j++ {
		d := q.Slopes[j] - q.Slopes[j-1]
		value += stiff * d * d
		f.ds[j] += 2 * stiff * d
		f.ds[j-1] -= 2 * stiff * d
	}
	for j := range grad {
		grad[j] = f.ds[j] * f.rate[j]
	}
	return value
}

// row returns the NLL of a row and adds it, with weight w, to the sums by piece. The top class has u = 0, so that
// nothing overflows.
func (f *orderLoss) row(z []float64, y int, w float64) float64 {
	top := z[argmax(z)]
	inv := orderCells / (orderReach * f.t)
	var sum, uy float64
	for k, v := range z {
		g := top - v
		j := f.piece[int(min(orderCells, g*inv))]
		h := g - f.q.Knots[j]
		drop := f.at[j] + h*(f.q.Slopes[j]+f.bend[j]*h)
		f.p[k], f.h[k], f.j[k] = -drop, h, j
	}
	uy = f.p[y]
	vexp.Shifted(f.p, f.p, 0)
	for _, e := range f.p {
		sum += e
	}
	scale := 1 / sum
	for k, e := range f.p {
		r := e * scale
		if k == y {
			r--
		}
		if r == 0 {
			continue // most classes of a large K
		}
		r *= w
		to, rh := &f.r[f.j[k]], r*f.h[k]
		to[0] += r
		to[1] += rh
		to[2] += rh * f.h[k]
	}
	return math.Log(sum) - uy
}

// gather turns the sums by piece into the gradient in the slopes: a gap of h in piece j has the drop
// s_j (h - h²/2width) + s_{j+1} h²/2width there, and (s_i + s_{i+1}) width/2 in every piece i before it.
func (f *orderLoss) gather() {
	last := len(f.ds) - 1
	f.ds[last] -= f.r[last][1]
	var beyond float64
	for j := last - 1; j >= 0; j-- {
		width := f.q.Knots[j+1] - f.q.Knots[j]
		beyond += f.r[j+1][0]
		far := f.r[j][2] / (2 * width)
		f.ds[j] -= f.r[j][1] - far + beyond*width/2
		f.ds[j+1] -= far + beyond*width/2
	}
}
