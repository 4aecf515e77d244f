package refit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
)

// followed are the online Platt scalings that corrections of the top confidence are mixed from, quick ones first. What
// is quick enough after a change is noise between changes, and loses on a calibrated stream; no single one is both
// (bench/results/refit.md).
var followed = []calibrator.OnlineSettings{
	{Calibeating: calibrator.Plain, Gamma: .2, Memory: 100},
	{Calibeating: calibrator.Plain, Gamma: .4, Memory: 400},
	{Calibeating: calibrator.Plain, Gamma: .4, Memory: 1600},
}

// slower are those where the quick one would be mostly noise: beside powers, and of a class with few rows.
var slower = followed[1:]

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

func newSpeeds(of []calibrator.OnlineSettings) (*speeds, error) {
	s := &speeds{Weights: make([]float64, 1+len(of))}
	for _, set := range of {
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
	v := s.v[:0]
	for i := range s.Weights {
		q := max(followClip, min(1-followClip, c))
		if i > 0 {
			q = s.Platts[i-1].Predict(c)
		}
		if !hit {
			q = 1 - q
		}
		v = append(v, w*logProb(q))
	}
	s.v = v
	reweigh(s.Weights, v)
	for _, p := range s.Platts {
		if err := p.UpdateWeighted(c, hit, w); err != nil {
			return err
		}
	}
	return nil
}

// reweigh is Bayes' rule with fixed share. v are the logarithms of the likelihoods, and are overwritten.
func reweigh(weights, v []float64) {
	best, sum := math.Inf(-1), 0.0
	for i, x := range weights {
		v[i] += math.Log(x)
		best = max(best, v[i])
	}
	for i := range v {
		v[i] = math.Exp(v[i] - best)
		sum += v[i]
	}
	for i := range v {
		weights[i] = (1-followShare)*v[i]/sum + followShare/float64(len(v))
	}
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
	if slices.Contains(s.Platts, nil) {
		return nil, errors.New("a scaling is missing")
	}
	return s, checkWeights(s.Weights)
}

func checkWeights(weights []float64) error {
	var sum float64
	for i, w := range weights {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("weight %d is %v, allowed 0 to 1", i, w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the sum of the weights is %v, allowed is 1", sum)
	}
	return nil
}

// powers are online powers β of all probabilities, of several speeds, and β = 1 beside them: temperatures of what the
// calibrator says. A map of the top confidence leaves the shares of the other classes as they are, which are wrong too
// where scores become sharper or flatter. Powers are mixed as speeds are, by the log loss L of the label, which is
// convex in β. They are the quick part where there are more than two classes, and the top confidence is mapped after
// the mean power: slowly, as what both follow quickly is noise twice. Each takes Newton's steps, with the curvature of
// the rows that it remembers (calibrator.Raise), of at most powerStep:
//
//	A ← A + (ρ - A) min(w, m)/m + w L'',  β ← β - w L'/A
//
// A label less likely than ε/K of the top class counts as that likely, ε = followClip: what is beyond is too rare to
// learn from.
type powers struct {
	Of      []power   `json:"powers"`
	Weights []float64 `json:"weights"` // of β = 1, then of Of
	p, v    []float64
}

type power struct {
	Beta float64 `json:"beta"`
	A    float64 `json:"a"`
}

// powerMemories are the m of powers.
var powerMemories = [...]float64{100, 400, 1600}

const (
	powerPrior = 50. // ρ
	powerStep  = .5
)

// newPowers returns nil for two classes.
func newPowers(k int) *powers {
	if k <= 2 {
		return nil
	}
	s := &powers{p: make([]float64, k)}
	for range powerMemories {
		s.Of = append(s.Of, power{1, powerPrior})
	}
	for range 1 + len(s.Of) {
		s.Weights = append(s.Weights, 1/float64(1+len(s.Of)))
	}
	return s
}

// update takes the label of a row of probabilities q, with their LogRatios z, that counts w times. It returns the top
// confidence by the mean power of before.
func (s *powers) update(q, z []float64, y int, w float64) (conf float64) {
	label := max(z[y], math.Log(followClip/float64(len(q))))
	conf = calibrator.Raise(s.p, z, s.mean()).Top
	s.v = append(s.v[:0], w*(math.Log(slices.Max(q))+label))
	for i := range s.Of {
		x := &s.Of[i]
		r := calibrator.Raise(s.p, z, x.Beta)
		s.v = append(s.v, w*(math.Log(r.Top)+x.Beta*label))
		x.A += (powerPrior-x.A)*min(w, powerMemories[i])/powerMemories[i] + w*r.Var
		step := max(-powerStep, min(powerStep, w*(r.Mean-label)/x.A))
		x.Beta = max(1/calibrator.MaxTemperature, min(1/calibrator.MinTemperature, x.Beta-step))
	}
	reweigh(s.Weights, s.v)
	return conf
}

// mean is 1 with two classes.
func (s *powers) mean() float64 {
	if s == nil {
		return 1
	}
	b := s.Weights[0]
	for i, x := range s.Of {
		b += s.Weights[1+i] * x.Beta
	}
	return max(1/calibrator.MaxTemperature, min(1/calibrator.MinTemperature, b)) // rounded
}

func restorePowers(state []byte, k int) (*powers, error) {
	s := newPowers(k)
	if s == nil {
		return nil, errors.New("powers of two classes")
	}
	if err := json.Unmarshal(state, s); err != nil {
		return nil, err
	}
	if len(s.Of) != len(powerMemories) || len(s.Weights) != 1+len(s.Of) {
		return nil, fmt.Errorf("%d weights of %d powers, want %d of %d", len(s.Weights), len(s.Of),
			1+len(powerMemories), len(powerMemories))
	}
	for i, x := range s.Of {
		if !(x.Beta >= 1/calibrator.MaxTemperature && x.Beta <= 1/calibrator.MinTemperature && x.A > 0 &&
			x.A <= math.MaxFloat64) {
			return nil, fmt.Errorf("power %d is %v of curvature %v", i, x.Beta, x.A)
		}
	}
	return s, checkWeights(s.Weights)
}

// What the top confidence follows is driven by the classes that are predicted often. Where one row in 100 is positive
// and the scores say too many, negatives are right more often than they say, and one map for all would raise the
// confidence of the few rows that are predicted positive, which are right less often. So the rows of a predicted class
// that has few of them may get a map of their own, and then the map of the others does not learn from them.
//
// A class has few rows where it is predicted fewRows times less often than if all were predicted equally often. Other
// classes keep the common map: with one for each the log loss falls, but windowed ECE rises, and in blocks of classes
// far more is lost at once (bench/results/refit.md). So no class goes apart either while labels come in runs (unmixed).

const (
	fewRows = 10
	// apartOdds: the map of a class goes apart once it is K·apartOdds times as likely as the common one, so that by
	// chance one of K classes does with a probability of 1/apartOdds at most.
	apartOdds = 10
	// mostApart bounds the classes that have a map of their own.
	mostApart = 32
)

// apart are the maps of the predicted classes with few rows.
type apart struct {
	rows int64   // since the calibrator took force
	of   []int64 // of these by predicted class
	ways []*way  // ascending by class
}

// way is the map of the rows of one predicted class, learnt from these only. weight is how likely it is against the
// common map, by Bayes' rule with fixed share, as in speeds, from and towards 1/(apartOdds K):
//
//	v = w q^ρ/(w q^ρ + (1 - w) c^ρ),  w ← (1 - α) v + α/(apartOdds K)
//
// with q and c the probabilities that the two gave the outcome of a row of weight ρ. It is apart where w > 1/2 at the
// end of a pane. Without the share, w/(1 - w) would be a martingale where the common map is true.
type way struct {
	class  int
	weight float64
	apart  bool
	speeds *speeds
}

// take counts a row and has the map of its class learn from it, if it has one. common is that of the others. It reports
// whether the row is of a class that goes apart.
func (a *apart) take(r *followedRow, common *speeds, k int) (apart bool, err error) {
	if a.of == nil {
		a.of = make([]int64, k)
	}
	a.rows++
	a.of[r.class]++
	i, found := slices.BinarySearchFunc(a.ways, r.class, func(w *way, class int) int { return w.class - class })
	isFew := a.of[r.class]*fewRows*int64(k) <= a.rows
	switch {
	case found && a.of[r.class]*fewRows*int64(k) > 2*a.rows: // so that one at the bound does not begin anew each time
		a.ways = slices.Delete(a.ways, i, i+1)
		return false, nil
	case !found && (!isFew || len(a.ways) == mostApart):
		return false, nil
	case !found:
		s, err := newSpeeds(slower)
		if err != nil {
			return false, err
		}
		a.ways = slices.Insert(a.ways, i, &way{class: r.class, weight: 1 / float64(apartOdds*k), speeds: s})
	}
	w := a.ways[i]
	w.weigh(r, common.top(), 1/float64(apartOdds*k))
	return w.apart, w.speeds.update(r.conf, r.hit, r.w)
}

// weigh takes the outcome of a row that neither map has learnt from.
func (w *way) weigh(r *followedRow, common calibrator.TopCorrection, share float64) {
	c := max(followClip, min(1-followClip, r.conf))
	own, other := w.speeds.top().Map(c), common.Map(c)
	if !r.hit {
		own, other = 1-own, 1-other
	}
	odds := w.weight / (1 - w.weight) * math.Exp(r.w*(logProb(own)-logProb(other)))
	w.weight = 1 - followShare*(1-share)
	if !math.IsInf(odds, 1) {
		w.weight = (1-followShare)*odds/(1+odds) + followShare*share
	}
}

// settle decides at the end of a pane which classes go apart. mixed is asked only where it matters.
func (a *apart) settle(mixed func() bool) {
	for _, w := range a.ways {
		w.apart = w.weight > .5 && mixed()
	}
}

// byClass are the maps of the classes that go apart.
func (a *apart) byClass() (out []calibrator.ClassCorrection) {
	for _, w := range a.ways {
		if w.apart {
			out = append(out, calibrator.ClassCorrection{Class: w.class, TopCorrection: w.speeds.top()})
		}
	}
	return out
}

func (a *apart) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(binenc.AppendVarint(dst, a.rows), uint64(len(a.of)))
	for _, n := range a.of {
		dst = binenc.AppendVarint(dst, n)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(a.ways)))
	for _, w := range a.ways {
		state, err := json.Marshal(w.speeds)
		if err != nil {
			return dst, err
		}
		dst = append(binenc.AppendUvarint(dst, uint64(w.class)), binenc.Flags(w.apart))
		dst = binenc.AppendBytes(binenc.AppendFloat64(dst, w.weight), state)
	}
	return dst, nil
}

func (a *apart) restore(r *binenc.Reader, k int) (err error) {
	a.rows = r.Varint()
	if n := r.Count(1, k); n > 0 {
		a.of = make([]int64, n)
	}
	for i := range a.of {
		a.of[i] = r.Varint()
	}
	if a.of != nil && len(a.of) != k {
		return fmt.Errorf("rows of %d predicted classes, want %d", len(a.of), k)
	}
	last := -1
	for range r.Count(11, mostApart) {
		w := &way{class: int(r.Int("predicted class", int64(last+1), int64(k-1)))}
		w.apart, w.weight = r.Byte() == 1, r.Float64()
		state := r.Bytes(binenc.MaxItems)
		if r.Err() != nil {
			return r.Err()
		}
		if !(w.weight >= 0 && w.weight < 1) {
			return fmt.Errorf("weight of predicted class %d: %v, allowed 0 to below 1", w.class, w.weight)
		}
		if w.speeds, err = restoreSpeeds(state); err != nil {
			return fmt.Errorf("predicted class %d: %w", w.class, err)
		}
		a.ways, last = append(a.ways, w), w.class
	}
	return r.Err()
}
