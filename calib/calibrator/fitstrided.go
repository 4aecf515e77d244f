package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

const (
	// sampleScores and sampleRows are how large the strided sample is, in scores and at least in rows, and
	// sampleShare is the most of all rows that it may be: a pass over it costs next to nothing.
	sampleScores = 1 << 21
	sampleRows   = 2048
	sampleShare  = 16
	// sampleStep is the distance in u of the differences that give the sample's curvature: far above the rounding
	// of float32 rows, well below the width of the optimum.
	sampleStep = 0.05
	// followSteps bounds the passes over all rows; three are usual.
	followSteps = 6
	// followEnds is the wanted error in u, half of the promised one.
	followEnds = 5e-7
	// modelError is how far, relatively, the sample's third derivative is trusted to be off.
	modelError = 0.1
)

// stride calls f with the numbers of m of n rows, one from each of equal runs, at a place in the run that is scattered,
// so that rows in a periodic order are met evenly.
func stride(n, m int, f func(i int)) {
	state := uint64(m)
	for j := range m {
		lo, hi := j*n/m, (j+1)*n/m
		state = state*6364136223846793005 + 1442695040888963407
		f(lo + int(state>>33)%(hi-lo))
	}
}

// strided returns a sample of the rows.
func (p *rowsFit) strided() (*rowsFit, bool) {
	n := len(p.y)
	m := min(max(sampleScores/p.k, sampleRows), n/sampleShare)
	if m < sampleRows/2 {
		return nil, false
	}
	s := &rowsFit{k: p.k, z: make([]float32, 0, m*p.k), y: make([]int32, 0, m), rows: p.rows}
	stride(n, m, func(i int) {
		w := p.weight(i)
		if p.w != nil {
			s.w = append(s.w, w)
		}
		s.total += w
		s.z, s.y = append(s.z, p.z[i*p.k:(i+1)*p.k]...), append(s.y, p.y[i])
	})
	return s, s.total > 0
}

// model returns the sample's optimum u and the first two derivatives there of its slope dL/du.
func (p *rowsFit) model() (u, d1, d2 float64, ok bool) {
	const width = 1e-4 // far below the sample's own error
	a := p.at(0)
	end := -math.Log(MinTemperature)
	if !a.below() {
		end = -end
	}
	b := a
	for b.below() == a.below() {
		if b.u == end {
			return 0, 0, 0, false
		}
		a = b
		next := 2*b.u + math.Copysign(0.5, end)
		if math.Abs(next) > math.Abs(end) {
			next = end
		}
		b = p.at(next)
	}
	slope := func(u float64) float64 { return p.at(u).slope }
	u, _ = root(slope, valued{a.u, a.slope}, valued{b.u, b.slope}, width)
	left, mid, right := p.at(u-sampleStep).slope, p.at(u).slope, p.at(u+sampleStep).slope
	d1 = (right - left) / (2 * sampleStep)
	d2 = (right - 2*mid + left) / (sampleStep * sampleStep)
	return u, d1, d2, d1 > 0
}

// follow starts at the sample's optimum and steps by a parabola for the slope: through the last point, through the
// one before it, and with the sample's second derivative. The step is the last one where the next would be below
// followEnds; it ends with ok = false where the steps do not shrink or leave the bracket.
func (p *rowsFit) follow(b *bracket, s *rowsFit, at point) (best point, curvature float64, ok bool) {
	u, d1, d2, ok := s.model()
	if !ok || u <= b.lo || u >= b.hi {
		return best, 0, false
	}
	var last float64 // the step that led to the point
	for range followSteps {
		before := at
		at = p.at(u)
		b.see(at)
		distrust := modelError // of the sample's first derivative
		if last != 0 {
			d1 = (at.slope-before.slope)/last + d2*last/2
			distrust = math.Abs(last) * (modelError*math.Abs(d2/d1) + math.Abs(last))
		}
		step := -at.slope / d1
		step = -at.slope / (d1 + d2*step/2)
		next := at.u + step
		if !(d1 > 0) || !(next >= b.lo && next <= b.hi) || last != 0 && math.Abs(step) > math.Abs(last)/2 {
			return best, 0, false
		}
		if math.Abs(step)*distrust <= followEnds {
			return point{u: next, nll: at.nll + at.slope*step + d1*step*step/2}, d1, true
		}
		u, last = next, step
	}
	return best, 0, false
}

// logProbs returns the float32 logarithms of float32 probabilities, rounded once. The rows must have been checked.
func logProbs(q []float32) []float32 {
	z := make([]float32, len(q))
	for i, v := range q {
		z[i] = float32(kernel.LogProb(v))
	}
	return z
}
