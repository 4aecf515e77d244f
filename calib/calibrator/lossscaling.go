package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// LossScaling is class-wise loss scaling, which draws the losses of the classes together: the classes that the
// calibrator serves worse count for more. With L_k the mean NLL of the rows of class k, over the classes that have
// rows,
//
//	L̄_k = (L_k - mean L)/sd L                  sample deviation
//	w_k = β/(1 + exp(-L̄_k/α)) - β/2            in (-β/2, β/2), a constant for the fit
//	loss = Σ_k (1 + w_k) L_k
//
// A fit with weights w changes the L_k, so weights and fit alternate until they agree (see LossScalingReport). Every
// class counts alike, however many rows it has: on imbalanced rows the NLL of all rows may well rise.
// The zero value is off.
// Reference: Jung, Seo, Jeong, Choi, Scaling of Class-wise Training Losses for Post-hoc Calibration, ICML 2023.
type LossScaling struct {
	// On switches it on.
	On bool
	// Alpha is α, in [0.1, 100], and Beta β, in [1.5, 2]. The fit chooses one that is 0, α up to ln(K)/2, to minimise
	//
	//	Σ_k (L⁰_k - w_k (L_k - L⁰_k) - mean L)²
	//
	// with L⁰ the class losses as they are before calibration and L after a fit with w = 0. That is the objective of
	// the paper's released code, which takes the first two evaluations of its optimiser for the two.
	Alpha, Beta float64
	// Printed takes the sums of a class's losses and the population deviation, as the paper prints them, in place
	// of the means and the sample deviation of its released code.
	Printed bool
}

// LossScalingReport says how class-wise loss scaling went.
type LossScalingReport struct {
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	// Rounds is how many rounds of weights and fit there were. Converged says that they agree: the fit asks for no
	// weight that differs by more than 1e-4, or its class losses deviate by less than a thousandth of their mean.
	Rounds    int  `json:"rounds"`
	Converged bool `json:"converged"`
	// Weights are the 1 + w_k of the fit, 0 for a class without rows.
	Weights []float64 `json:"weights"`
	// DeviationBefore and DeviationAfter are the deviation of the class losses under the fit with w = 0 and the last.
	DeviationBefore float64 `json:"deviation_before"`
	DeviationAfter  float64 `json:"deviation_after"`
}

// Bounds of α and β, those of the paper's released code; ln(K)/2 > 0.1 for every K. The paper itself bounds no α
// from above: one that is given may be as large as the weights differ at all.
const (
	alphaMin   = 0.1
	alphaGiven = 100
	betaMin    = 1.5
	betaMax    = 2.0
)

// alphaMax bounds the α that a fit chooses.
func alphaMax(k int) float64 { return math.Log(float64(k)) / 2 }

func (l LossScaling) check() error {
	if l.Alpha != 0 && !(l.Alpha >= alphaMin && l.Alpha <= alphaGiven) {
		return fmt.Errorf("loss scaling: alpha %g, allowed %g..%d", l.Alpha, alphaMin, alphaGiven)
	}
	if l.Beta != 0 && !(l.Beta >= betaMin && l.Beta <= betaMax) {
		return fmt.Errorf("loss scaling: beta %g, allowed %g..%g", l.Beta, betaMin, betaMax)
	}
	return nil
}

const (
	// weightsAgree ends the rounds: far below what a weight does to a fit, above the noise of PTS.
	weightsAgree = 1e-4
	// lossesAgree ends them too: the share of the mean to which the classes' losses differ. Where a calibrator can make
	// them equal, L̄ jumps there and no weights agree with their fit; but nothing is left to draw together either.
	lossesAgree = 1e-3
	maxRounds   = 60
)

// fitLossScaled fits e under class-wise loss scaling.
func fitLossScaled[T kernel.Float](e entry[T], d Data[T], opts Options) (Calibrator, Report, error) {
	set := opts.LossScaling
	if err := set.check(); err != nil {
		return nil, Report{}, fmt.Errorf("fit %s: %w", e.Name, err)
	}
	s, err := newSample(e.Name+Suffix, d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	inner, _, err := find[float64](e.Name)
	if err != nil {
		return nil, Report{}, err
	}
	opts.LossScaling, opts.Probs = LossScaling{}, false
	opts.Parameterised.warm = new([]float64)
	f := scaledFit{
		sample: s, set: set, opts: opts, fit: inner.fit,
		losses: make([]float64, s.k), mass: make([]float64, s.k), rows: make([]float64, s.n),
	}
	for i, yi := range s.y {
		f.mass[yi] += s.w[i]
	}
	return f.run()
}

// scaledFit is one fit under class-wise loss scaling.
type scaledFit struct {
	*sample
	set    LossScaling
	opts   Options
	fit    fitFunc[float64]
	mass   []float64 // K, summed weights of the classes
	losses []float64 // K, of the last calibrator
	rows   []float64 // n weights, of the last fit
}

func (f *scaledFit) run() (Calibrator, Report, error) {
	out := LossScalingReport{Alpha: f.set.Alpha, Beta: f.set.Beta}
	w, next := make([]float64, f.k), make([]float64, f.k)
	f.classLosses(Identity{})
	before := append([]float64(nil), f.losses...)
	c, r, err := f.refit(w)
	if err != nil {
		return nil, Report{}, err
	}
	normal, sd := f.normalised()
	out.DeviationBefore, out.DeviationAfter = sd, sd
	f.choose(&out, before, normal)
	step, most, last := 1.0, math.Inf(1), make([]float64, f.k)
	for out.Rounds = 1; out.Rounds <= maxRounds; out.Rounds++ {
		var change, along float64
		for k, l := range normal {
			next[k] = out.Beta*squash(l, out.Alpha) - w[k]
			change = max(change, math.Abs(next[k]))
			along += next[k] * last[k]
		}
		if mean, _ := f.meanLoss(); change <= weightsAgree || out.Rounds > 1 && out.DeviationAfter <= lossesAgree*mean {
			out.Converged = true
			break
		}
		if along < 0 && change > most/2 { // the last step went far too far
			step /= 2
		}
		most = change
		copy(last, next)
		for k := range w {
			w[k] += step * next[k]
		}
		if c, r, err = f.refit(w); err != nil {
			return nil, Report{}, err
		}
		normal, out.DeviationAfter = f.normalised()
	}
	out.Rounds = min(out.Rounds, maxRounds)
	return c, f.finished(c, r, out, w), nil
}

// finished makes the report: what the last fit said, with the NLLs of the rows as they are weighted by the caller.
func (f *scaledFit) finished(c Calibrator, r Report, out LossScalingReport, w []float64) Report {
	present := 0
	out.Weights = make([]float64, f.k)
	for k, v := range w {
		if f.mass[k] > 0 {
			out.Weights[k] = 1 + v
			present++
		}
	}
	r.NLLBefore, r.NLLAfter = f.nll(Identity{}), f.nll(c)
	r.Converged = r.Converged && out.Converged
	if present < f.k {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d classes have no rows and take no part in loss scaling",
			f.k-present))
	}
	if !out.Converged {
		r.Warnings = append(r.Warnings, fmt.Sprintf("loss scaling: weights and fit do not agree after %d rounds",
			out.Rounds))
	}
	r.LossScaling = &out
	return r
}

// refit fits with the loss Σ_k (1 + w_k) L_k and takes the class losses of the result.
func (f *scaledFit) refit(w []float64) (Calibrator, Report, error) {
	for i, y := range f.y {
		f.rows[i] = f.w[i] * (1 + w[y])
		if !f.set.Printed {
			f.rows[i] *= f.total / f.mass[y]
		}
	}
	c, r, err := f.fit(NewData(f.z, f.k, f.y, f.rows), f.opts)
	if err != nil {
		return nil, Report{}, err
	}
	f.classLosses(c)
	return c, r, nil
}

// classLosses writes the L_k of c; those of classes without rows are 0.
func (f *scaledFit) classLosses(c Calibrator) {
	clear(f.losses)
	f.eachNLL(c, func(i int, nll float64) { f.losses[f.y[i]] += f.w[i] * nll })
	if f.set.Printed {
		return
	}
	for k, m := range f.mass {
		if m > 0 {
			f.losses[k] /= m
		}
	}
}

// normalised returns L̄ and the deviation. L̄ is 0 for a class without rows, and for all where the losses do not
// differ.
func (f *scaledFit) normalised() (normal []float64, sd float64) {
	mean, present := f.meanLoss()
	for k, l := range f.losses {
		if f.mass[k] > 0 {
			sd += (l - mean) * (l - mean)
		}
	}
	free := present
	if !f.set.Printed {
		free--
	}
	sd = math.Sqrt(sd / max(free, 1))
	normal = make([]float64, f.k)
	for k, l := range f.losses {
		if f.mass[k] > 0 && sd > 1e-12*mean {
			normal[k] = (l - mean) / sd
		}
	}
	return normal, sd
}

func (f *scaledFit) meanLoss() (mean, present float64) {
	for k, l := range f.losses {
		if f.mass[k] > 0 {
			mean += l
			present++
		}
	}
	return mean / present, present
}

// squash is w/β.
func squash(normal, alpha float64) float64 { return sigmoid(normal/alpha) - 0.5 }

const alphaGrid = 201

// choose sets α and β unless they are given. The objective is quadratic in β, so the best β for an α has a closed form;
// α is the best of a grid.
func (f *scaledFit) choose(out *LossScalingReport, before, normal []float64) {
	lo, hi := alphaMin, alphaMax(f.k)
	if f.set.Alpha != 0 {
		lo, hi = f.set.Alpha, f.set.Alpha
	}
	least := math.Inf(1)
	for i := range alphaGrid {
		alpha := lo + (hi-lo)*float64(i)/(alphaGrid-1)
		beta, value := f.bestBeta(alpha, before, normal)
		if value < least {
			least, out.Alpha, out.Beta = value, alpha, beta
		}
	}
}

// bestBeta minimises Σ_k (a_k - β b_k)², a_k = L⁰_k - mean L, b_k = squash(L̄_k) (L_k - L⁰_k), within the bounds of β.
func (f *scaledFit) bestBeta(alpha float64, before, normal []float64) (beta, value float64) {
	mean, _ := f.meanLoss()
	var aa, ab, bb float64
	for k, l := range f.losses {
		if f.mass[k] > 0 {
			a, b := before[k]-mean, squash(normal[k], alpha)*(l-before[k])
			aa, ab, bb = aa+a*a, ab+a*b, bb+b*b
		}
	}
	beta = f.set.Beta
	if beta == 0 {
		beta = betaMin
		if bb > 0 {
			beta = min(betaMax, max(betaMin, ab/bb))
		}
	}
	return beta, aa - 2*beta*ab + beta*beta*bb
}
