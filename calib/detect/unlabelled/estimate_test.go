package unlabelled

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
)

// TestConfidenceBased: raw confidence c, true rate q(c) = c². With the right calibrator the interval holds the accuracy of the drawn
// labels in 95 %, ECE is that of the definition on rows, and the miss is no news; with the wrong one it is.
func TestConfidenceBased(t *testing.T) {
	square := func(c float64) float64 { return c * c }
	rng := rand.New(rand.NewPCG(1, 1))
	inside, trials := 0, 200
	for range trials {
		var g acc.Grid
		var right float64
		ece := make([]float64, 15)
		const n = 1000
		for range n {
			c := rng.Float64()
			if err := g.Add(c, 1, false); err != nil {
				t.Fatal(err)
			}
			ece[metric.BinIndex(c, 15)] += (square(c) - c) / n
			if rng.Float64() < square(c) {
				right++
			}
		}
		e := ConfidenceBased(g.Groups(), square, 15)
		if e.N != n || e.Assumption == "" {
			t.Fatalf("%+v", e)
		}
		var want float64
		for _, x := range ece {
			want += math.Abs(x)
		}
		if math.Abs(e.ECE-want) > 1e-6 { // cells are 1/3600 wide
			t.Fatalf("ECE %v, on rows %v", e.ECE, want)
		}
		if e.Lo <= right/n && right/n <= e.Hi {
			inside++
		}
		if m := e.Against(right, n); math.Abs(m.Z) > 5 {
			t.Errorf("right calibrator: miss %+v", m)
		}
		if m := ConfidenceBased(g.Groups(), nil, 15).Against(right, n); m.Z < 5 {
			t.Errorf("wrong calibrator: miss %+v, want far above", m)
		}
	}
	if inside < trials*90/100 || inside == trials {
		t.Errorf("%d of %d intervals hold the accuracy, want about 95 %%", inside, trials)
	}
	if e := ConfidenceBased(nil, nil, 15); !math.IsNaN(e.Accuracy) || e.N != 0 {
		t.Errorf("no rows: %+v", e)
	}
}

// labelShift draws a model of three classes with posteriors that are exact under the prior, and the rows under others.
type world struct{ prior []float64 }

// row draws a class by shares and an observation x of it, and returns the posterior under the world's prior.
func (w world) row(rng *rand.Rand, shares []float64) (y int, p []float64) {
	u := rng.Float64()
	for y = 0; y < 2 && u >= shares[y]; y++ {
		u -= shares[y]
	}
	x := rng.NormFloat64() + 1.5*float64(y)
	p = make([]float64, 3)
	var sum float64
	for j := range p {
		d := x - 1.5*float64(j)
		p[j] = w.prior[j] * math.Exp(-d*d/2)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return y, p
}

func argmax(p []float64) (top int) {
	for j, x := range p {
		if x > p[top] {
			top = j
		}
	}
	return top
}

// TestLabelShift: shares move from .5 .3 .2 to .1 .2 .7. Both methods find them and the accuracy; intervals of BBSE cover; without
// correction the confidence-based estimate is wrong, with it right.
func TestLabelShift(t *testing.T) {
	w := world{[]float64{.5, .3, .2}}
	now := []float64{.1, .2, .7}
	rng := rand.New(rand.NewPCG(5, 5))
	const n, trials = 3000, 60
	covered := 0
	var off, offCorrected float64
	for trial := range trials {
		joint, predicted := make([]float64, 9), make([]float64, 3)
		var probs []float64
		var right, plain, corrected float64
		for range n {
			y, p := w.row(rng, w.prior)
			joint[argmax(p)*3+y]++
		}
		for range n {
			y, p := w.row(rng, now)
			probs = append(probs, p...)
			predicted[argmax(p)]++
			if argmax(p) == y {
				right += 1. / n
			}
			plain += p[argmax(p)] / n
		}
		b, err := LabelShift(joint, predicted)
		if err != nil {
			t.Fatal(err)
		}
		e, err := EM(probs, w.prior)
		if err != nil {
			t.Fatal(err)
		}
		if b.Lo <= right && right <= b.Hi {
			covered++
		}
		row := make([]float64, 3)
		for i := 0; i < len(probs); i += 3 {
			Correct(row, probs[i:i+3], e.Weights)
			corrected += row[argmax(probs[i:i+3])] / n
		}
		if math.Abs(e.Accuracy-right) > .04 || math.Abs(corrected-e.Accuracy) > 1e-9 {
			t.Errorf("trial %d: accuracy %v, EM %v, by hand %v", trial, right, e.Accuracy, corrected)
		}
		off += (plain - right) / trials
		offCorrected += (corrected - right) / trials
		for j, s := range now {
			if math.Abs(e.Shares[j]-s) > .05 || math.Abs(b.Shares[j]-s) > .12 {
				t.Errorf("trial %d: share of class %d is %v, EM %v, BBSE %v", trial, j, s, e.Shares[j], b.Shares[j])
			}
		}
	}
	// The standard error of these means is .009/sqrt(60).
	if off < .015 || math.Abs(offCorrected) > .005 {
		t.Errorf("mean confidence is off by %v, corrected by %v; want above .015, and about 0", off, offCorrected)
	}
	if covered < trials*85/100 {
		t.Errorf("%d of %d intervals of BBSE hold the accuracy, want about 95 %%", covered, trials)
	}
}

func TestShiftRefused(t *testing.T) {
	for name, c := range map[string]struct{ joint, predicted []float64 }{
		"shape":            {make([]float64, 4), make([]float64, 3)},
		"one class":        {[]float64{50}, []float64{50}},
		"no rows":          {make([]float64, 4), []float64{50, 50}},
		"absent class":     {[]float64{50, 0, 50, 0}, []float64{50, 50}},
		"confused classes": {[]float64{25, 25, 25, 25}, []float64{50, 50}},
		"NaN":              {[]float64{math.NaN(), 1, 1, 50}, []float64{50, 50}},
	} {
		if _, err := LabelShift(c.joint, c.predicted); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, want ErrInput", name, err)
		}
	}
	for name, c := range map[string]struct{ p, prior []float64 }{
		"shape": {[]float64{.5, .5, 1}, []float64{.5, .5}}, "no rows": {nil, []float64{.5, .5}}, "prior 0": {[]float64{.5, .5}, []float64{1, 0}},
		"no distribution": {[]float64{.5, .6}, []float64{.5, .5}}, "NaN": {[]float64{math.NaN(), .6}, []float64{.5, .5}},
	} {
		if _, err := EM(c.p, c.prior); !errors.Is(err, ErrInput) {
			t.Errorf("EM, %s: error %v, want ErrInput", name, err)
		}
	}
	s, err := EM([]float64{1, 0, 1, 0}, []float64{.5, .5})
	if err != nil || s.Shares[0] != 1 || s.Accuracy != 1 {
		t.Errorf("certain rows: %+v, %v", s, err)
	}
	p := []float64{1, 0}
	Correct(p, p, []float64{0, 2})
	if p[0] != 1 {
		t.Errorf("a row that the weights exclude: %v, want it as it was", p)
	}
}
