package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

const (
	// exactScores is how many scores are fitted in float64 at any rate: it takes milliseconds.
	exactScores = 1 << 18
	// blockRows is the rows that go to the kernel at once; their summaries stay in the nearest cache.
	blockRows = 128
	// leastShare is the least ratio of slope of the gradient to NLL at which the gradient of float32 rows is
	// good for 1e-6 in ln T. The gradient is a difference of NLL and entropy, each good to about 1e-8 of itself in
	// the mean; where all rows are nearly uniform, little is left of it.
	leastShare = 0.05
)

// point is the mean NLL at β = e^u, and its derivative by u:
//
//	dL/du = β dL/dβ = 1/W Σ_i w_i (E_p[βz_i] - βz_iy) = 1/W Σ_i w_i (NLL_i - H_i)
//
// because H = LSE - E_p[βz]: NLL and entropy of one pass give both.
type point struct{ u, nll, slope float64 }

// below says that the optimum lies at a larger u. Rows so certain that nothing is left of their gradient are right,
// or tied at any u, as in moments.below.
func (p point) below() bool { return p.slope <= 0 }

// rowsFit fits the temperature on float32 logits through the block kernel, without a copy.
type rowsFit struct {
	z     []float32
	k     int
	y     []int32
	w     []float64
	total float64
	rows  []kernel.Row
	evals int
}

// fitRows is the fit of the float32 logits of f, or of the float32 log-probabilities. With ok = false nothing can be
// said: the caller fits in float64, which has the right error for a row that is not allowed.
func fitRows(f *fitter[float32]) (t float64, r FitReport, ok bool) {
	p := &rowsFit{z: f.z, k: f.k, y: f.y, w: f.w, rows: newRows(len(f.y))}
	at, flat, ok := p.first(0, &r)
	if !ok || flat {
		return 0, r, false
	}
	r.NLLBefore = at.nll
	b := bracket{lo: -math.Log(MaxTemperature), hi: -math.Log(MinTemperature)}
	best, curvature := p.search(&b, at)
	if !(curvature >= leastShare*best.nll) && best.u > b.lo && best.u < b.hi {
		return 0, r, false
	}
	r.Iterations, r.NLLAfter = p.evals, best.nll
	switch {
	case best.u == -math.Log(MaxTemperature) && !best.below():
		r.OnBound = true
		return MaxTemperature, r, true
	case best.u == -math.Log(MinTemperature) && best.below():
		r.OnBound = true
		return MinTemperature, r, true
	}
	return math.Exp(-best.u), r, true
}

func newRows(n int) []kernel.Row { return make([]kernel.Row, min(n, blockRows)) }

// first is the first pass, at u. It checks what fitter.check does, counts into r, and says whether all rows are
// uniform.
func (p *rowsFit) first(u float64, r *FitReport) (at point, flat, ok bool) {
	if p.k < 2 || len(p.z) != len(p.y)*p.k || p.w != nil && len(p.w) != len(p.y) {
		return point{}, false, false
	}
	seen := make([]bool, p.k)
	uniform := 1 / float64(p.k)
	flat = true
	for i, y := range p.y {
		w := p.weight(i)
		if y < 0 || int(y) >= p.k || !weightAllowed(w) {
			return point{}, false, false
		}
		if w > 0 {
			p.total += w
			r.Rows++
			if !seen[y] {
				seen[y] = true
				r.Classes++
			}
		}
	}
	if r.Rows == 0 {
		return point{}, false, false
	}
	good := true
	at = p.pass(u, func(rows []kernel.Row) {
		for i := range rows {
			good = good && rows[i].OK
			flat = flat && rows[i].Conf == uniform
		}
	})
	return at, flat, good
}

func (p *rowsFit) weight(i int) float64 {
	if p.w == nil {
		return 1
	}
	return p.w[i]
}

func (p *rowsFit) at(u float64) point { return p.pass(u, nil) }

// pass evaluates at u, and shows the summaries of every block of rows to look.
func (p *rowsFit) pass(u float64, look func([]kernel.Row)) point {
	p.evals++
	t := math.Exp(-u)
	inverse := math.Exp(u)
	var nll, entropy float64
	for from := 0; from < len(p.y); from += blockRows {
		rows := p.rows[:min(blockRows, len(p.y)-from)]
		kernel.LogitRows(rows, nil, p.z[from*p.k:(from+len(rows))*p.k], p.k, t)
		if look != nil {
			look(rows)
		}
		for i := range rows {
			r, w := &rows[i], p.weight(from+i)
			if w == 0 {
				continue
			}
			row := p.z[(from+i)*p.k:]
			// ln S + (max - z_y)/T: nothing is lost where the logits are large.
			gap := float64(row[r.Arg]) - float64(row[p.y[from+i]])
			nll += w * (r.LogSum() + gap*inverse)
			entropy += w * r.Entropy
		}
	}
	return point{u, nll / p.total, (nll - entropy) / p.total}
}

// search returns the optimum in the bracket b and dL'/du near it, from the point at u = 0.
func (p *rowsFit) search(b *bracket, at point) (best point, curvature float64) {
	b.see(at)
	if s, ok := p.strided(); ok {
		if best, curvature, ok = p.follow(b, s, at); ok {
			return best, curvature
		}
	}
	return p.narrow(b, at)
}

// see moves an end of the bracket to a point.
func (b *bracket) see(p point) {
	if p.below() {
		b.lo, b.loSeen = max(b.lo, p.u), true
	} else {
		b.hi, b.hiSeen = min(b.hi, p.u), true
	}
}

// narrow is the search without a model: it needs about ten passes.
func (p *rowsFit) narrow(b *bracket, at point) (best point, curvature float64) {
	from := at
	end := b.hi
	if !at.below() {
		end = b.lo
	}
	to := p.at(end)
	if to.below() == from.below() {
		return to, 0 // on the bound
	}
	last, before := to, from
	eval := func(u float64) float64 {
		before, last = last, p.at(u)
		if last.slope == 0 {
			return math.Copysign(math.SmallestNonzeroFloat64, -1) // below: see point
		}
		return last.slope
	}
	u, _ := root(eval, valued{from.u, from.slope}, valued{to.u, to.slope}, bracketWidth)
	if last.u != u {
		last, before = before, last
	}
	if last.u != u {
		last = p.at(u)
	}
	return last, (last.slope - before.slope) / (last.u - before.u)
}
