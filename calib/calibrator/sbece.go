package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/vexp"
)

const (
	sbeceGrid  = 121  // points in ln T: 5 % apart
	sbeceWidth = 1e-6 // of the last bracket in ln T
)

// SBECEReport says how far the rows tell temperatures apart by SB-ECE: the objective follows the noise of its bins and
// has several minima, so that one far from the best T by NLL may win by less than chance.
type SBECEReport struct {
	// Least is SB-ECE at the T that was taken.
	Least float64 `json:"least"`
	// Error is the standard error of the accuracy, √(acc(1-acc)/n) with Kish's n for weights: a difference of SB-ECE
	// below it says nothing.
	Error float64 `json:"error"`
	// Minima are the T of all minima with SB-ECE up to Least + Error, ascending, and Low and High the least and the
	// largest T of these and of the 121 of the search that have it.
	Minima []float64 `json:"minima"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
}

// FitTemperatureSBECE returns the T in [MinTemperature, MaxTemperature] with the least
//
//	SB-ECE(T) = (Σ_j S_j/W |A_j - C_j|^p)^(1/p)
//
// of the top confidences of softmax(z/T), in the soft bins of opts.SoftBins. It can have several minima: the
// search looks at 121 points, 5 % apart in T, and refines every local minimum among them by golden section, so it
// is the global one unless a dip is narrower than that; of equal ones it is the T nearest 1. The report's SBECE says
// which other minima are as good but for chance, and there is a warning where there is one. Rows whose confidence is
// 1/K at T → ∞ can make that the minimum: compare the NLL of the report. The report's OnBound says that the minimum is
// a bound. It costs about 300 passes.
// Errors are those of FitTemperature; a setting that is not allowed is an error too.
// Reference: Karandikar et al., Soft Calibration Objectives for Neural Networks, NeurIPS 2021, Eq. 8-12.
func FitTemperatureSBECE[T kernel.Float](d Data[T], opts Options) (Temperature, Report, error) {
	s, err := newSample("temperature by SB-ECE", d, opts)
	if err != nil {
		return Temperature{}, Report{}, err
	}
	bins, err := opts.SoftBins.withDefaults()
	if err != nil {
		return Temperature{}, Report{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	at := s.sbeceAt(bins)
	lo, hi := math.Log(MinTemperature), math.Log(MaxTemperature)
	step := (hi - lo) / (sbeceGrid - 1)
	values := make([]float64, sbeceGrid)
	flat := true
	for i := range values {
		values[i] = at(lo + float64(i)*step)
		flat = flat && values[i] == values[0]
	}
	if flat {
		s.report.Flat = true
		return s.sbeceDone(Temperature{t: 1})
	}
	minima := sbeceMinima(at, values, lo, step)
	best := sbecePoint{0, at(0)}
	for _, m := range minima {
		if m.value < best.value || m.value == best.value && math.Abs(m.u) < math.Abs(best.u) {
			best = m
		}
	}
	if best.u-lo < sbeceWidth {
		best.u, s.report.OnBound = lo, true
	} else if hi-best.u < sbeceWidth {
		best.u, s.report.OnBound = hi, true
	}
	s.sbeceFlatness(minima, best, values, lo, step)
	return s.sbeceDone(Temperature{t: clampTemperature(math.Exp(best.u))})
}

// sbecePoint is SB-ECE at u = ln T.
type sbecePoint struct{ u, value float64 }

// sbeceMinima refines the local minima of the values at lo, lo + step, …; those on a plateau may be equal.
func sbeceMinima(at func(float64) float64, values []float64, lo, step float64) []sbecePoint {
	var minima []sbecePoint
	last := len(values) - 1
	for i, v := range values {
		if i > 0 && values[i-1] < v || i < last && values[i+1] < v {
			continue
		}
		m := sbecePoint{lo + float64(i)*step, v}
		a, b := lo+float64(max(0, i-1))*step, lo+float64(min(last, i+1))*step
		if x, fx := golden(at, a, b); fx < v {
			m = sbecePoint{x, fx}
		}
		minima = append(minima, m)
	}
	return minima
}

// sbeceFlatness fills in the report's SBECE.
func (s *sample) sbeceFlatness(minima []sbecePoint, best sbecePoint, values []float64, lo, step float64) {
	var hits, squares float64
	for i, y := range s.y {
		squares += s.w[i] * s.w[i]
		if argmax(s.row(i)) == int(y) {
			hits += s.w[i]
		}
	}
	acc := min(1, hits/s.total)
	r := &SBECEReport{Least: best.value, Error: math.Sqrt(acc * (1 - acc) * squares / s.total / s.total)}
	r.Low, r.High = math.Exp(best.u), math.Exp(best.u)
	for i, v := range values {
		if v <= r.Least+r.Error {
			t := math.Exp(lo + float64(i)*step)
			r.Low, r.High = min(r.Low, t), max(r.High, t)
		}
	}
	var last sbecePoint
	for _, m := range minima {
		if m.value > r.Least+r.Error {
			continue
		}
		t := math.Exp(m.u)
		r.Low, r.High = min(r.Low, t), max(r.High, t)
		if len(r.Minima) == 0 || m.u-last.u > 1.5*step && parted(last, m, values, lo, step) {
			r.Minima = append(r.Minima, t)
		}
		last = m
	}
	s.report.SBECE = r
	if len(r.Minima) > 1 {
		s.warn("SB-ECE has minima at %.3g, all within %.2g of the least: these rows do not tell them apart", r.Minima,
			r.Error)
	}
}

// parted says that a value between two minima is above both: else they are points of one plateau.
func parted(a, b sbecePoint, values []float64, lo, step float64) bool {
	const rounding = 1e-9
	top := max(a.value, b.value) * (1 + rounding)
	for i := max(0, int(math.Ceil((a.u-lo)/step))); i < len(values) && lo+float64(i)*step < b.u; i++ {
		if values[i] > top {
			return true
		}
	}
	return false
}

// sbeceAt returns SB-ECE as a function of ln T.
func (s *sample) sbeceAt(b SoftBins) func(u float64) float64 {
	conf, right := s.top()
	e := make([]float64, s.k)
	gaps := make([]float64, len(s.z)) // z - max z
	for i := range s.n {
		row := s.row(i)
		top := row[argmax(row)]
		for j, v := range row {
			gaps[i*s.k+j] = v - top
		}
	}
	return func(u float64) float64 {
		s.report.Iterations++
		beta := math.Exp(-u)
		for i := range conf {
			for j, d := range gaps[i*s.k : (i+1)*s.k] {
				e[j] = beta * d
			}
			vexp.Shifted(e, e, 0)
			conf[i] = 1 / total(e)
		}
		return metric.SBECEBin(metric.SoftBins(conf, right, s.w, b.Bins, b.Temperature), b.Norm)
	}
}

// golden is a golden-section search for a minimum in [a, b].
func golden(f func(float64) float64, a, b float64) (x, fx float64) {
	const g = 0.6180339887498949
	x1, x2 := b-g*(b-a), a+g*(b-a)
	f1, f2 := f(x1), f(x2)
	for b-a > sbeceWidth {
		if f1 <= f2 {
			b, x2, f2 = x2, x1, f1
			x1 = b - g*(b-a)
			f1 = f(x1)
		} else {
			a, x1, f1 = x1, x2, f2
			x2 = a + g*(b-a)
			f2 = f(x2)
		}
	}
	if f1 <= f2 {
		return x1, f1
	}
	return x2, f2
}

// sbeceDone completes the report.
func (s *sample) sbeceDone(t Temperature) (Temperature, Report, error) {
	if s.report.OnBound {
		s.warn("temperature %.6g, a bound", t.t)
	}
	if err := s.describe(t, 1); err != nil {
		return Temperature{}, Report{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	return t, s.report, nil
}
