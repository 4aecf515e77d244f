package calibrator

import "math"

const (
	// nearEnough is the secant step in ln T that ends FitTemperatureNear. What is left is about the product of the last
	// two steps.
	nearEnough = 0.01
	// firstNear is its first step, mostNear the longest.
	firstNear = 0.05
	mostNear  = 1.0
	nearSteps = 8
)

// FitTemperatureNear is FitTemperature to about 1e-3 in ln T, from a temperature that is near the optimum: the one of
// rows that are mostly the same. That takes three passes over the rows, where FitTemperature takes ten. passes is their
// number, but for those of FitTemperature, which is called where the optimum is far away or not known.
func FitTemperatureNear(d Data[float32], near Temperature) (t Temperature, passes int, err error) {
	p := &rowsFit{z: d.Scores, k: d.K, y: d.Labels, w: d.Weights}
	p.rows = newRows(len(p.y))
	if t, ok := p.nearTo(-math.Log(clampTemperature(near.T()))); ok {
		return Temperature{t: t}, p.evals, nil
	}
	t, _, err = FitTemperature(d, Options{})
	return t, p.evals, err
}

// nearTo is the secant method from u.
func (p *rowsFit) nearTo(u float64) (t float64, ok bool) {
	lo, hi := -math.Log(MaxTemperature), -math.Log(MinTemperature)
	u = min(max(u, lo), hi)
	var r FitReport
	was, flat, ok := p.first(u, &r)
	if !ok || flat {
		return 0, false
	}
	step := firstNear
	if !was.below() {
		step = -firstNear
	}
	for p.evals < nearSteps {
		next := min(max(was.u+step, lo), hi)
		if next == was.u {
			return clampTemperature(math.Exp(-next)), true // on the bound
		}
		at := p.at(next)
		step = at.slope * (at.u - was.u) / (was.slope - at.slope)
		// The slope has one root, on the side that its sign says.
		if math.IsNaN(step) || math.IsInf(step, 0) || step > 0 != at.below() && at.slope != 0 {
			return 0, false
		}
		if was = at; math.Abs(step) < nearEnough {
			return clampTemperature(math.Exp(-(at.u + step))), true
		}
		step = min(max(step, -mostNear), mostNear)
	}
	return 0, false
}
