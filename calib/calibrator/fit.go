package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/vexp"
)

const (
	// bracketWidth ends the fit: the width in ln T of a bracket of the optimum. It is wanted to 1e-6.
	bracketWidth = 1e-7
	// overshoot is added to Newton's steps, so that the last one crosses the root and closes the bracket.
	overshoot = bracketWidth / 4
	// creep is the share of the last step that a Newton step on the same side of the root may have. Newton
	// near the root shrinks quadratically; on a slope that falls off exponentially, as that of saturated rows
	// does, its steps keep their size, and halving the bracket is faster.
	creep = 0.3
	// maxIterations bounds the passes over the rows; 26 halvings with two Newton steps each are 78.
	maxIterations = 100
)

// FitReport says how a fit went.
type FitReport struct {
	Rows    int `json:"rows"`    // rows of positive weight
	Classes int `json:"classes"` // distinct labels among them; with 1 the fit only tells how often it was predicted
	// NLLBefore and NLLAfter are the mean NLL in nats on the fitted rows, at T = 1 and at the fitted T.
	NLLBefore  float64 `json:"nll_before"`
	NLLAfter   float64 `json:"nll_after"`
	Iterations int     `json:"iterations"` // passes over the rows
	// OnBound says that the NLL still falls where T leaves [MinTemperature, MaxTemperature].
	OnBound bool `json:"on_bound"`
	// Flat says that no T changes the NLL (every row has equal scores): T is 1.
	Flat bool `json:"flat"`
}

// FitTemperature returns the T in [MinTemperature, MaxTemperature] that minimises the mean NLL, in nats,
//
//	L = 1/W Σ_i w_i [ln Σ_k exp(β z_ik) - β z_iy],  β = 1/T
//	dL/dβ = 1/W Σ_i w_i (E_p[z_i] - z_iy),  d²L/dβ² = 1/W Σ_i w_i Var_p[z_i] ≥ 0
//
// to 1e-6 in ln T. L is convex in β, so the optimum is the one root of dL/dβ: Newton's method in ln β inside a
// bracket, which is halved where Newton creeps; float64, natural logarithms. A minimum outside the bounds ends on the
// bound, which the report says: rows that are all right have theirs at T → 0, rows no better than chance at T → ∞.
//
// More than 2^18 float32 scores are not copied: kernel.LogitRows summarises them in blocks, dL/d ln β is the mean of
// NLL less entropy, and a strided sample tells where to look and how the curve bends, so that three or four passes
// over all rows suffice. The means of the report then have the kernel's relative accuracy of 1e-6; where that is not
// enough for T, as of rows that are all but uniform, the fit is the one in float64. float32 probabilities are fitted
// as float32 logarithms. More than 2^18 float64 scores start from the optimum of such a sample, too.
// It returns an error that names the row where a score, label or weight is not allowed, or if there is no row.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
func FitTemperature[T kernel.Float](d Data[T], opts Options) (Temperature, FitReport, error) {
	f := newFitter(d, opts.Probs)
	if narrow, ok := any(f).(*fitter[float32]); ok && len(f.z) > exactScores && !opts.Probs {
		if t, report, ok := fitRows(narrow); ok {
			return Temperature{t: clampTemperature(t)}, report, nil
		}
	}
	report, err := f.check()
	if err != nil {
		return Temperature{}, FitReport{}, fmt.Errorf("fit temperature: %w", err)
	}
	if narrow, ok := any(f).(*fitter[float32]); ok && len(f.z) > exactScores && opts.Probs {
		logs := *narrow
		logs.z, logs.probs = logProbs(narrow.z), false
		if t, report, ok := fitRows(&logs); ok {
			return Temperature{t: clampTemperature(t)}, report, nil
		}
	}
	f.d, f.e = make([]float64, f.k), make([]float64, f.k)
	t := f.minimise(&report)
	return Temperature{t: clampTemperature(t)}, report, nil
}

func clampTemperature(t float64) float64 { return min(MaxTemperature, max(MinTemperature, t)) }

type fitter[T kernel.Float] struct {
	z     []T
	k     int
	y     []int32
	w     []float64
	probs bool
	total float64
	d, e  []float64 // scratch of one row
}

func newFitter[T kernel.Float](d Data[T], probs bool) *fitter[T] {
	return &fitter[T]{z: d.Scores, k: d.K, y: d.Labels, w: d.Weights, probs: probs}
}

// moments are the mean NLL at β and its first two derivatives by β.
type moments struct{ nll, d1, d2 float64 }

// below says that the optimum lies at a larger β. Rows so certain that nothing is left of their gradient
// (m.d1 = m.d2 = 0) are right, or tied at any β: the search goes on to the bound.
func (m moments) below() bool { return m.d1 < 0 || m.d1 == 0 && m.d2 == 0 }

// bracket holds the optimum between lo and hi in u = ln β; a side that was not looked at is a bound of T.
type bracket struct {
	lo, hi         float64
	loSeen, hiSeen bool
	side, stay     int     // side of the root that the last step ended on (+1: below it), steps in a row there
	last           float64 // size of the last Newton step
}

func (b *bracket) narrow(u float64, m moments) {
	side := -1
	if m.below() {
		b.lo, b.loSeen, side = u, true, 1
	} else {
		b.hi, b.hiSeen = u, true
	}
	if side != b.side {
		b.side, b.stay = side, 0
	}
	b.stay++
}

// next is Newton's step in u, or, where that leaves the bracket or creeps, the bound or the middle.
func (b *bracket) next(u float64, m moments) float64 {
	delta := -m.d1 / (math.Exp(u) * m.d2) // d/du L'(e^u) = β L''
	next := u + delta + math.Copysign(overshoot, float64(b.side))
	creeps := b.stay > 2 && math.Abs(next-u) > creep*b.last
	if next > b.lo && next < b.hi && !creeps {
		b.last = math.Abs(next - u)
		return next
	}
	b.stay = 0
	switch {
	case !b.hiSeen && b.side > 0:
		return b.hi
	case !b.loSeen && b.side < 0:
		return b.lo
	}
	return b.lo + (b.hi-b.lo)/2
}

// minimise returns the optimal T by a search in u = ln β, along which dL/dβ rises through 0 once.
func (f *fitter[T]) minimise(r *FitReport) float64 {
	b := bracket{lo: -math.Log(MaxTemperature), hi: -math.Log(MinTemperature)}
	bounds := b
	u, m := 0.0, f.eval(1)
	r.Iterations, r.NLLBefore, r.NLLAfter = 1, m.nll, m.nll
	if m.d1 == 0 && m.d2 == 0 {
		// L is convex: a slope of 0 here and at the least β is one of 0 all the way.
		if at := f.eval(math.Exp(bounds.lo)); at.d1 == 0 && at.d2 == 0 {
			r.Flat = true
			return 1
		}
	}
	hint, hinted := f.hint()
	for r.Iterations < maxIterations {
		b.narrow(u, m)
		if b.hi-b.lo < bracketWidth {
			break
		}
		if hinted && hint > b.lo && hint < b.hi {
			u = hint
		} else {
			u = b.next(u, m)
		}
		hinted = false
		m = f.eval(math.Exp(u))
		r.Iterations++
		r.NLLAfter = m.nll
		if u == bounds.hi && m.below() {
			r.OnBound = true
			return MinTemperature
		}
		if u == bounds.lo && !m.below() {
			r.OnBound = true
			return MaxTemperature
		}
	}
	return math.Exp(-u)
}

// hint is the optimum of a strided sample, where there are so many scores that it saves passes over them.
func (f *fitter[T]) hint() (u float64, ok bool) {
	n := len(f.y)
	m := min(max(exactScores/(4*f.k), sampleRows/2), n/sampleShare)
	if len(f.z) <= exactScores || m < sampleRows/2 {
		return 0, false
	}
	s := fitter[T]{k: f.k, probs: f.probs, d: f.d, e: f.e}
	stride(n, m, func(i int) {
		w := 1.0
		if f.w != nil {
			w = f.w[i]
		}
		s.total += w
		s.z, s.y, s.w = append(s.z, f.z[i*f.k:(i+1)*f.k]...), append(s.y, f.y[i]), append(s.w, w)
	})
	if s.total == 0 {
		return 0, false
	}
	var r FitReport
	t := s.minimise(&r)
	return -math.Log(t), !r.OnBound && !r.Flat
}

// eval computes the moments at β in one pass, with the row's maximum taken off: d_k = z_k - max z, E = E_p[d].
func (f *fitter[T]) eval(beta float64) moments {
	var m moments
	for i, y := range f.y {
		w := 1.0
		if f.w != nil {
			w = f.w[i]
		}
		if w == 0 {
			continue
		}
		f.row(i)
		for k, d := range f.d {
			f.e[k] = beta * d
		}
		vexp.Shifted(f.e, f.e, 0)
		var s, e1, e2 float64
		for k, d := range f.d {
			if e := f.e[k]; e > 0 {
				s += e
				e1 += e * d
				e2 += e * d * d
			}
		}
		e1 /= s
		dy := f.d[y]
		m.nll += w * (math.Log(s) - beta*dy)
		m.d1 += w * (e1 - dy)
		m.d2 += w * max(0, e2/s-e1*e1)
	}
	return moments{m.nll / f.total, m.d1 / f.total, m.d2 / f.total}
}

// row puts row i, less its maximum, into d.
func (f *fitter[T]) row(i int) {
	top := math.Inf(-1)
	for k, v := range f.z[i*f.k : (i+1)*f.k] {
		x := float64(v)
		if f.probs {
			x = kernel.LogProb(v)
		}
		f.d[k] = x
		top = max(top, x)
	}
	for k := range f.d {
		f.d[k] -= top
	}
}
