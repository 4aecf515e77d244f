package detect

import (
	"gonum.org/v1/gonum/stat/distuv"
)

// Stretch counts consecutive labelled rows and the right ones among them; weights at most 1, as in a Pane.
type Stretch struct{ N, Right float64 }

// dipLevel is the probability, about, that Dip is above 0 for a window in which accuracy did not vary.
const dipLevel = .05

// Dip returns how far below its mean accuracy was for a while, by the stretches of a reference window in their order.
// With A = Σ right/Σ n, and for each of the W runs of 1, 2, 4, … neighbouring stretches, up to half of all, at steps of
// half their length, n rows with the accuracy x:
//
//	dip = max(0, max over the runs with x < A of (A - x) - z² x̃(1-x̃)/n/(A - x))
//	x̃ = (right + 1)/(n + 2),  z = Φ⁻¹(1 - .05/W)
//
// The dip of a run is 0 where it is within z standard errors of noise, and is shrunk the less the further beyond. So,
// by Bonferroni, the dip of a window in which accuracy did not vary is 0 with a probability of about .95 or more. Where
// easy and hard rows take turns, it comes near to what the hard ones are below the mean, if they fill a few hundred
// rows. It is an estimate: of regimes that the window does not hold it knows nothing.
func Dip(stretches []Stretch) float64 {
	var all Stretch
	for _, s := range stretches {
		all = all.plus(s)
	}
	runs := runsOf(stretches)
	if all.N <= 0 || len(runs) == 0 {
		return 0
	}
	mean := all.Right / all.N
	z := distuv.UnitNormal.Quantile(1 - dipLevel/float64(len(runs)))
	var dip float64
	for _, r := range runs {
		rate := (r.Right + 1) / (r.N + 2)
		if below := mean - r.Right/r.N; below > 0 {
			dip = max(dip, below-z*z*rate*(1-rate)/r.N/below)
		}
	}
	return dip
}

func (s Stretch) plus(o Stretch) Stretch { return Stretch{s.N + o.N, s.Right + o.Right} }

// runsOf returns the sums of the runs of 1, 2, 4, … neighbours at steps of half their length.
func runsOf(stretches []Stretch) []Stretch {
	var out []Stretch
	for length := 1; 2*length <= len(stretches); length *= 2 {
		for from := 0; from+length <= len(stretches); from += max(1, length/2) {
			var run Stretch
			for _, s := range stretches[from : from+length] {
				run = run.plus(s)
			}
			if run.N > 0 {
				out = append(out, run)
			}
		}
	}
	return out
}
