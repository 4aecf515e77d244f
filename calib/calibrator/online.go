package calibrator

import (
	"fmt"
	"math"
)

// Calibeating is what OnlinePlatt does with the forecast of Platt's map.
type Calibeating int

const (
	// Tracking (TOPS) forecasts the mean outcome of the earlier rows whose forecast was in the same bin.
	Tracking Calibeating = iota
	// Hedging (HOPS) runs Foster's calibrated forecaster in every bin. It is calibrated whatever the outcomes.
	Hedging
	// Plain (OPS) is the forecast of Platt's map itself.
	Plain
)

// OnlineSettings are the settings of OnlinePlatt. The zero value is the default, that of the paper but for Clip.
type OnlineSettings struct {
	Calibeating Calibeating `json:"calibeating"`
	// Bins is 1/ε, the number of bins of width ε of [0, 1], 2..1000; 0 is 10. Hedging keeps Bins² counts.
	Bins int `json:"bins"`
	// Gamma is the γ of the Newton step, in (0, 1]; 0 is 0.1. Rho is the ρ of the first matrix ρI, positive; 0 is 100.
	Gamma float64 `json:"gamma"`
	Rho   float64 `json:"rho"`
	// Memory is the number of rows that the matrix remembers, from 10; 0: all. With it the steps never become small,
	// and θ follows a map that moves: A ← (1 - 1/Memory) A + (ρ/Memory) I + g gᵀ.
	Memory float64 `json:"memory,omitempty"`
	// Radius is that of the ball which slope and intercept are kept in, from 1; 0 is 100.
	Radius float64 `json:"radius"`
	// Clip keeps confidences in [Clip, 1-Clip], so that no row has log-odds that move everything; in
	// (0, 0.5), and 0 is 1e-4. The paper has 0.01, which many confidences of a deep network are beyond.
	Clip float64 `json:"clip"`
	// Seed is that of Hedging's draws.
	Seed uint64 `json:"seed"`
}

func (s OnlineSettings) withDefaults() (OnlineSettings, error) {
	for _, f := range []struct {
		name         string
		v            *float64
		def, lo, hi  float64
		openAtBottom bool
	}{
		{"gamma", &s.Gamma, 0.1, 0, 1, true}, {"rho", &s.Rho, 100, 0, 1e12, true},
		{"radius", &s.Radius, 100, 1, maxParam, false}, {"clip", &s.Clip, defaultClip, 1e-12, 0.49, false},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if !(*f.v >= f.lo && *f.v <= f.hi) || f.openAtBottom && *f.v == f.lo {
			return s, fmt.Errorf("%s: %g, allowed %g..%g", f.name, *f.v, f.lo, f.hi)
		}
	}
	if s.Memory != 0 && !(s.Memory >= 10 && s.Memory <= 1e12) {
		return s, fmt.Errorf("memory: %g, allowed 10..1e12, or 0 for all rows", s.Memory)
	}
	if s.Bins == 0 {
		s.Bins = 10
	}
	if s.Bins < 2 || s.Bins > maxOnlineBins {
		return s, fmt.Errorf("bins: %d, allowed 2..%d", s.Bins, maxOnlineBins)
	}
	if s.Calibeating < Tracking || s.Calibeating > Plain {
		return s, fmt.Errorf("calibeating: %d, allowed are Tracking, Hedging and Plain", s.Calibeating)
	}
	return s, nil
}

const (
	maxOnlineBins = 1000
	// maxOnlineWeight keeps A finite.
	maxOnlineWeight = 1e12
)

// OnlinePlatt recalibrates the top confidence of a stream, one row at a time: Platt's map
//
//	p = σ(a ℓ + b),  ℓ = ln c/(1-c), c clipped
//
// whose θ = (a, b) follows the outcomes by the online Newton step on the log loss, from (1, 0). With x = (ℓ, 1) and
// outcome y in {0, 1},
//
//	g = (p - y) x,  A ← A + g gᵀ,  θ ← the point of the ball |θ| ≤ Radius nearest to θ - A⁻¹g/γ in the norm of A
//
// and then calibeating, which corrects what no θ does. A row costs O(1), with Hedging O(Bins), and no allocation.
//
// The mean log loss of p exceeds that of the best fixed θ in the ball, chosen with hindsight, by O(ln n / n), where
// γ is small enough for the ball and the log-odds (in the paper's bound the constant grows exponentially with both; it
// is far smaller in practice). Tracking has, as n grows, no more squared error than p has after the best correction of
// its bins. Hedging moreover has an expected calibration error of at most ε/2 + O(1/sqrt(n)) in its bins, whatever the
// outcomes, if these do not depend on the draws. The draws are a hash of Seed and the number of rows, so that the same
// stream gives the same forecasts; an adversary who knows the seed could exploit it.
//
// Labels may come late: the guarantees are those of the forecasts as they are when the labels come. Not safe for
// concurrent use. Make it with NewOnlinePlatt.
// Reference: Gupta and Ramdas, Online Platt Scaling with Calibeating, ICML 2023, Algorithm 1; Foster and Hart,
// Calibeating, Theoretical Economics 18, 2023; Foster, A Proof of Calibration via Blackwell's Approachability
// Theorem, Games and Economic Behavior 29, 1999.
type OnlinePlatt struct {
	set   OnlineSettings
	theta [2]float64
	a     [3]float64 // A_11, A_12, A_22
	rows  uint64
	// track has the outcomes by bin of p; hedge those by bin of p and bin of the hedged forecast.
	track, hedge []tally
}

// tally is how many rows a bin had, and how many of them were right.
type tally struct {
	Rows uint64 `json:"rows"`
	Hits uint64 `json:"hits"`
}

func (t tally) mean(none float64) float64 {
	if t.Rows == 0 {
		return none
	}
	return float64(t.Hits) / float64(t.Rows)
}

// NewOnlinePlatt returns an OnlinePlatt that has seen nothing: it leaves confidences as they are, but for the clip.
func NewOnlinePlatt(set OnlineSettings) (*OnlinePlatt, error) {
	set, err := set.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("online platt: %w", err)
	}
	o := &OnlinePlatt{set: set, theta: [2]float64{1, 0}, a: [3]float64{set.Rho, 0, set.Rho},
		track: make([]tally, set.Bins)}
	if set.Calibeating == Hedging {
		o.hedge = make([]tally, set.Bins*set.Bins)
	}
	return o, nil
}

// Rows is how many outcomes it has seen.
func (o *OnlinePlatt) Rows() uint64 { return o.rows }

// Slope is a.
func (o *OnlinePlatt) Slope() float64 { return o.theta[0] }

// Intercept is b.
func (o *OnlinePlatt) Intercept() float64 { return o.theta[1] }

// Current is the map as it is now, without calibeating and without the clip.
func (o *OnlinePlatt) Current() *Platt {
	return &Platt{p: plattParams{Slope: o.theta[0], Intercept: o.theta[1]}}
}

// Describe is one line for people.
func (o *OnlinePlatt) Describe() string {
	return fmt.Sprintf("online Platt scaling of the top class after %d rows, slope %.4g, intercept %.4g, %s, %d bins",
		o.rows, o.theta[0], o.theta[1], [...]string{"tracking", "hedging", "no calibeating"}[o.set.Calibeating],
		o.set.Bins)
}

// Predict returns the recalibrated confidence in [0, 1] of c in [0, 1]; NaN gives NaN.
func (o *OnlinePlatt) Predict(c float64) float64 {
	if c != c {
		return c
	}
	p := o.forecast(o.logOdds(c))
	j := o.bin(p)
	switch o.set.Calibeating {
	case Tracking:
		return o.track[j].mean(p)
	case Hedging:
		return o.middle(o.hedged(j, p))
	}
	return p
}

// Update takes the outcome of a row of confidence c in [0, 1]. A c outside is an error, and changes nothing.
func (o *OnlinePlatt) Update(c float64, right bool) error { return o.UpdateWeighted(c, right, 1) }

// UpdateWeighted takes the outcome of a row whose log loss counts w times, w in [0, 1e12]:
//
//	A ← A + w g gᵀ,  θ ← θ - w A⁻¹g/γ,  of A the share min(1, w/Memory) is forgotten
//
// A step is at most that of w → ∞, g/(γ gᵀg) along g. A weight of 1 is Update. Calibeating counts every row as one.
// A c or w outside is an error, and changes nothing.
func (o *OnlinePlatt) UpdateWeighted(c float64, right bool, w float64) error {
	if !(c >= 0 && c <= 1) {
		return fmt.Errorf("online platt: confidence %g, allowed 0..1", c)
	}
	if !(w >= 0 && w <= maxOnlineWeight) {
		return fmt.Errorf("online platt: weight %g, allowed 0..%g", w, maxOnlineWeight)
	}
	l := o.logOdds(c)
	p := o.forecast(l)
	j := o.bin(p)
	if o.hedge != nil {
		o.hedge[j*o.set.Bins+o.hedged(j, p)].add(right)
	}
	o.track[j].add(right)
	y := 0.0
	if right {
		y = 1
	}
	o.step(l, p-y, w)
	o.rows++
	return nil
}

func (t *tally) add(right bool) {
	t.Rows++
	if right {
		t.Hits++
	}
}

func (o *OnlinePlatt) logOdds(c float64) float64 {
	c = max(o.set.Clip, min(1-o.set.Clip, c))
	return math.Log(c / (1 - c))
}

func (o *OnlinePlatt) forecast(l float64) float64 { return sigmoid(o.theta[0]*l + o.theta[1]) }

// bin is that of p: [j/M, (j+1)/M), the last one closed.
func (o *OnlinePlatt) bin(p float64) int { return min(int(p*float64(o.set.Bins)), o.set.Bins-1) }

// middle of bin j.
func (o *OnlinePlatt) middle(j int) float64 { return (float64(j) + 0.5) / float64(o.set.Bins) }
