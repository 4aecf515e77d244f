package refit

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// followed are the online Platt scalings that corrections of the top confidence are mixed from, quick ones first. What
// is quick enough after a change is noise between changes, and loses on a calibrated stream; no single one is both
// (bench/results/refit.md).
var followed = []calibrator.OnlineSettings{
	{Calibeating: calibrator.Plain, Gamma: .2, Memory: 100},
	{Calibeating: calibrator.Plain, Gamma: .4, Memory: 400},
	{Calibeating: calibrator.Plain, Gamma: .4, Memory: 1600},
}

const (
	// followShare is the α of speeds: a map that was of no use until a change has weight again within tens of rows.
	followShare = .005
	// followClip keeps confidences off 0 and 1, as the scalings do.
	followClip = 1e-4
)

// speeds are online Platt scalings of several speeds, and no correction beside them. What is served is the mean of
// their maps in log-odds, with weights by how well each foretold the outcomes so far: Bayes' rule on the log loss, by
// which with rows of weight ρ and q_i the probability that map i gave the outcome
//
//	v_i = w_i q_i^ρ / Σ_j w_j q_j^ρ,  w_i ← (1 - α) v_i + α/n,  θ = Σ_i w_i θ_i
//
// The log loss of θ on a row is at most Σ_i w_i times that of θ_i, as it is convex in θ.
// Reference: Herbster, Warmuth, Tracking the Best Expert, Machine Learning 32, 1998 (fixed share).
type speeds struct {
	Platts  []*calibrator.OnlinePlatt `json:"platts"`
	Weights []float64                 `json:"weights"` // of no correction, then of Platts
	v       []float64
}

func newSpeeds() (*speeds, error) {
	s := &speeds{Weights: make([]float64, 1+len(followed))}
	for _, set := range followed {
		p, err := calibrator.NewOnlinePlatt(set)
		if err != nil {
			return nil, err
		}
		s.Platts = append(s.Platts, p)
	}
	for i := range s.Weights {
		s.Weights[i] = 1 / float64(len(s.Weights))
	}
	return s, nil
}

// update takes the outcome of a row of confidence c that counts w times.
func (s *speeds) update(c float64, hit bool, w float64) error {
	best, v := math.Inf(-1), s.v[:0]
	for i, x := range s.Weights {
		q := max(followClip, min(1-followClip, c))
		if i > 0 {
			q = s.Platts[i-1].Predict(c)
		}
		if !hit {
			q = 1 - q
		}
		v = append(v, math.Log(x)+w*logProb(q))
		best = max(best, v[i])
	}
	s.v = v
	var sum float64
	for i := range v {
		v[i] = math.Exp(v[i] - best)
		sum += v[i]
	}
	for i := range v {
		s.Weights[i] = (1-followShare)*v[i]/sum + followShare/float64(len(v))
	}
	for _, p := range s.Platts {
		if err := p.UpdateWeighted(c, hit, w); err != nil {
			return err
		}
	}
	return nil
}

// top is the mean map.
func (s *speeds) top() calibrator.TopCorrection {
	t := calibrator.TopCorrection{Slope: s.Weights[0]}
	for i, p := range s.Platts {
		t.Slope += s.Weights[1+i] * max(0, p.Slope())
		t.Intercept += s.Weights[1+i] * p.Intercept()
	}
	return t
}

// rows is how many outcomes it has seen.
func (s *speeds) rows() int64 { return int64(s.Platts[0].Rows()) }

// restoreSpeeds reads the JSON of speeds, or of the one scaling that there was before: then that has all the weight.
func restoreSpeeds(state []byte) (*speeds, error) {
	s := new(speeds)
	if err := json.Unmarshal(state, s); err != nil {
		return nil, err
	}
	if s.Platts == nil {
		p := new(calibrator.OnlinePlatt)
		s.Platts, s.Weights = []*calibrator.OnlinePlatt{p}, []float64{0, 1}
		if err := p.UnmarshalJSON(state); err != nil {
			return nil, err
		}
	}
	if len(s.Platts) == 0 || len(s.Weights) != 1+len(s.Platts) {
		return nil, fmt.Errorf("%d weights of %d scalings, allowed is one more, of 1 or more", len(s.Weights),
			len(s.Platts))
	}
	var sum float64
	for i, w := range s.Weights {
		if !(w >= 0 && w <= 1) || i > 0 && s.Platts[i-1] == nil {
			return nil, fmt.Errorf("weight %d is %v, allowed 0 to 1, with a scaling", i, w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-6 {
		return nil, fmt.Errorf("the sum of the weights is %v, allowed is 1", sum)
	}
	return s, nil
}
