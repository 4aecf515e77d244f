package detect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// rounding is what float64 may add to an expectation of exactly 1: a few ulps of sums of four products up to 100.
const rounding = 1e-12

var nullSpecs = []Spec{
	{Null: NullECE}, {Null: NullECE, Epsilon: .01}, {Null: NullECE, Epsilon: .005, Bins: 10},
	{Null: NullECE, Bins: 60, Epsilon: .2},
	{Null: NullBin}, {Null: NullBin, Epsilon: .02}, {Null: NullBin, Epsilon: .005, Bins: 10},
	{Null: NullBin, Bins: 60, Epsilon: .2},
	{Null: NullBin, Bins: 2}, {Null: NullECE, Bins: 2},
	{Null: NullClass, Bins: 60}, {Null: NullClass, Bins: 34, Epsilon: .02}, {Null: NullClass, Bins: 34, Epsilon: .5},
	{Null: NullBin, Epsilon: .01, Reference: ramp(15, .3, nil)}, {Null: NullECE, Epsilon: .01,
		Reference: ramp(15, .3, nil)},
	{Null: NullBin, Epsilon: .01, Reference: ramp(15, .9, slacks(15))},
	{Null: NullECE, Epsilon: .01, Reference: ramp(15, .9, slacks(15))},
	{Null: NullBin, Epsilon: .01, Reference: ramp(15, -.9, slacks(15))},
	{Null: NullECE, Epsilon: .01, Reference: ramp(15, -.9, slacks(15))},
}

// ramp is a reference curve from -top to top.
func ramp(bins int, top float64, slack []float64) *Reference {
	r := &Reference{Bias: make([]float64, bins), Slack: slack}
	for j := range r.Bias {
		r.Bias[j] = top * (2*float64(j)/float64(bins-1) - 1)
	}
	return r
}

func slacks(bins int) []float64 {
	s := make([]float64, bins)
	for j := range s {
		s[j] = .01 * float64(j%4)
	}
	return s
}

// fixedAndAdaptive calls f with every set of chords by bin that a detector of the specification may ever hold: the
// fixed dictionary, and the adaptive experts after several hundred pasts, random and extreme. theta and g are those of
// NullECE.
func fixedAndAdaptive(t *testing.T, s Spec, f func(name string, chords []chord, x aim)) {
	t.Helper()
	det, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	d := det.dict
	for k, x := range d.experts {
		a := aim{theta: x.theta}
		for j := range a.g {
			a.g[j] = x.dir
		}
		chords := make([]chord, len(d.bins))
		switch {
		case x.kind == Adaptive:
			continue
		case x.bin >= 0:
			copy(chords[x.bin*s.cells():], x.chords)
		default:
			copy(chords, x.chords)
		}
		f(fmt.Sprintf("%v expert %d", x.kind, k), chords, a)
	}
	if s.Null == NullClass {
		return
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 300 {
		past := randomPast(rng, s.Bins, trial)
		chords := make([]chord, s.Bins)
		if s.Null == NullBin {
			d.adaptiveBin(d.bins, chords, past, math.MaxUint64)
			f(fmt.Sprintf("adaptive, past %d", trial), chords, aim{})
			continue
		}
		for _, shy := range shyness {
			d.adaptiveECE(chords, past, math.MaxUint64, shy)
			f(fmt.Sprintf("adaptive, shy %v, past %d", shy, trial), chords, d.aimECE(past, shy))
		}
	}
}

func randomPast(rng *rand.Rand, bins, trial int) []remembered {
	past := make([]remembered, bins)
	for j := range past {
		n := math.Exp(rng.Float64()*30 - 5)
		a := n * rng.Float64()
		switch trial % 5 {
		case 0:
			a = 0
		case 1:
			a = n
		case 2:
			n = 0
			a = 0
		}
		past[j] = remembered{n, n * (float64(j) + rng.Float64()) / float64(bins), a}
	}
	return past
}

// TestFair is the guarantee, row by row: under every point of the null every bet has expectation at most 1. c runs
// over the bin, its edges and what rounding of the sums can add; the rate of right rows over all that the null allows,
// ends included.
func TestFair(t *testing.T) {
	testsize.Slow(t)
	for _, s := range nullSpecs {
		s, err := s.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%v ε=%v M=%d reference=%v", s.Null, s.Epsilon, s.Bins, s.Reference != nil),
			func(t *testing.T) {
				bets := 0
				fixedAndAdaptive(t, s, func(name string, chords []chord, x aim) {
					for j, c := range chords {
						if c == (chord{}) {
							continue
						}
						bets++
						name := fmt.Sprintf("%s, bin %d", name, j)
						if s.Null != NullECE {
							fairInBin(t, s, name, j, c)
						} else {
							fairShare(t, s, name, j, c, x.theta)
						}
					}
				})
				if bets < 100 {
					t.Fatalf("only %d bets were tried", bets)
				}
			})
	}
}

// points returns confidences of bin j: edges, rounding beyond them, and between.
func points(s Spec, j int) []float64 {
	lo, hi := s.edges(j)
	c := []float64{lo - margin, lo, math.Nextafter(lo, 1), hi, math.Nextafter(hi, 0), hi + margin}
	for i := 1; i < 24; i++ {
		c = append(c, lo+(hi-lo)*float64(i)/24)
	}
	return c
}

// expectation returns E[bet] for a rate p of right rows at confidence c.
func expectation(ch chord, p, c float64) float64 {
	return p*math.Exp(ch.a1+ch.b1*c) + (1-p)*math.Exp(ch.a0+ch.b0*c)
}

func fairInBin(t *testing.T, s Spec, name string, j int, ch chord) {
	t.Helper()
	bias, slack := referenceOf(s, j)
	for _, c := range points(s, j) {
		for i := -20; i <= 20; i++ {
			p := c + bias + (s.Epsilon+slack)*float64(i)/20
			if p < 0 || p > 1 {
				continue
			}
			if e := expectation(ch, p, c); !(e <= 1+rounding) {
				t.Fatalf("%s: c=%v, rate %v: expectation is 1 + %g, allowed 1", name, c, p, e-1)
			}
		}
	}
}

func referenceOf(s Spec, j int) (bias, slack float64) {
	if s.Reference == nil {
		return 0, 0
	}
	if s.Reference.Slack != nil {
		slack = s.Reference.Slack[j]
	}
	return s.Reference.Bias[j], slack
}

// fairShare checks E[bet | bin j, c, rate] ≤ 1 + θ(|b - β| - slack - ε) for every rate whatever. Over the bins of a
// row that is 1 + θ(Σ P(j)(|b_j - β_j| - slack_j) - ε), at most 1 under NullECE.
func fairShare(t *testing.T, s Spec, name string, j int, ch chord, theta float64) {
	t.Helper()
	bias, slack := referenceOf(s, j)
	for _, c := range points(s, j) {
		for i := 0; i <= 40; i++ {
			p := float64(i) / 40
			most := 1 + theta*(math.Abs(p-c-bias)-slack-s.Epsilon)
			// Where a bin is bet on with less than full direction the slack counts less, but so does the error: with
			// |b - β| below the slack the bound is that of no error.
			most = max(most, 1-theta*s.Epsilon)
			if e := expectation(ch, p, c); !(e <= most+rounding) {
				t.Fatalf("%s: c=%v, rate %v: expectation is %v, allowed %v", name, c, p, e, most)
			}
		}
	}
}

// TestFairRow draws rows of NullECE on its boundary: Σ P(j)|b_j| = ε over random shares and signs, the error spread
// over all bins or all of it in a few. The expectation of a row's bet is at most 1 for the fixed experts and after any
// past.
func TestFairRow(t *testing.T) {
	s, err := Spec{Null: NullECE}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	largest := 0.0
	fixedAndAdaptive(t, s, func(name string, chords []chord, _ aim) {
		for range 50 {
			e := expectedRow(rng, s, chords)
			if largest = max(largest, e); !(e <= 1+rounding) {
				t.Fatalf("%s: expectation of a row is 1 + %g, allowed 1", name, e-1)
			}
		}
	})
	// A test of nothing but hopeless bets would pass: some must come near to fair.
	if largest < .99 {
		t.Fatalf("largest expectation is %v, want near 1", largest)
	}
}

func expectedRow(rng *rand.Rand, s Spec, chords []chord) float64 {
	share, c, bias := make([]float64, s.Bins), make([]float64, s.Bins), make([]float64, s.Bins)
	var total, ece float64
	for j := range share {
		share[j] = math.Pow(rng.Float64(), 4)
		total += share[j]
		c[j] = (float64(j) + rng.Float64()) / float64(s.Bins)
		if rng.IntN(3) > 0 { // towards either end
			bias[j] = rng.Float64() * (float64(rng.IntN(2)) - c[j])
		}
		ece += share[j] * math.Abs(bias[j])
	}
	scale := min(1, s.Epsilon*total/ece)
	var e float64
	for j, ch := range chords {
		e += share[j] / total * expectation(ch, c[j]+scale*bias[j], c[j])
	}
	return e
}
