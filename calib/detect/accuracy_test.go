package detect

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// slowAccuracy is the test of NullAccuracy row by row, R not in log space.
type slowAccuracy struct {
	rate, tol float64
	r         []float64
	past      [2]remembered
}

// bets returns direction, stake and weight of every expert: four falls, then two half-lives, which bet on a fall or
// not at all.
func (s *slowAccuracy) bets(eps float64) (dirs, stakes, weights []float64) {
	theta := func(dir, p float64) float64 {
		q := math.Min(math.Max(s.rate+dir*s.tol, .005), .995)
		loss := s.rate + margin + s.tol
		if dir < 0 {
			loss = 1 - s.rate + margin + s.tol
		}
		return math.Min(math.Max(0, dir*(p-q)/(q*(1-q))), .9/math.Max(loss, .05))
	}
	for _, d := range []float64{.02, .04, .08, .18} {
		dirs, stakes, weights = append(dirs, -1), append(stakes, theta(-1, s.rate-eps-d)), append(weights, .75/4)
	}
	for _, p := range s.past {
		r := min(0, (p.a-s.rate*p.n)/(p.n+10))
		dirs, stakes, weights = append(dirs, -1), append(stakes, theta(-1, s.rate+r)), append(weights, .125)
	}
	return dirs, stakes, weights
}

// observe returns Σ w R after a pane, which an alarm has not put back yet.
func (s *slowAccuracy) observe(rows []row, eps float64) (total float64) {
	dirs, stakes, weights := s.bets(eps)
	for k := range s.r {
		product, bets := 1.0, stakes[k] > 0 && len(rows) > 0
		for _, x := range rows {
			a := 0.0
			if x.a {
				a = 1
			}
			product *= 1 + stakes[k]*(dirs[k]*(a-s.rate)-s.tol)
		}
		if bets {
			s.r[k] = (s.r[k] + 1) * product
		}
		total += weights[k] * s.r[k]
	}
	for h, life := range []float64{1000, 8000} {
		keep := math.Pow(.5, float64(len(rows))/life)
		p := &s.past[h]
		p.n, p.a = p.n*keep+float64(len(rows)), p.a*keep
		for _, x := range rows {
			if x.a {
				p.a++
			}
		}
	}
	return total
}

// TestAccuracyAgainstRows compares the detector with the bets on every row. Confidences are at random: they play no
// part.
func TestAccuracyAgainstRows(t *testing.T) {
	const tolerance, alpha, eps = 1e-6, 1e-4, .03
	for _, rate := range []float64{.8, .5} {
		ref := &Reference{Accuracy: rate, AccuracySlack: .004}
		fast, err := New(Spec{Null: NullAccuracy, Epsilon: eps, Alpha: alpha, Reference: ref})
		if err != nil {
			t.Fatal(err)
		}
		slow := &slowAccuracy{rate: rate, tol: eps + margin + .004, r: make([]float64, 6)}
		if dirs, _, _ := slow.bets(eps); len(fast.state) != len(dirs) {
			t.Fatalf("%d experts, want %d", len(fast.state), len(dirs))
		}
		rng := rand.New(rand.NewPCG(3, 3))
		alarms := 0
		for pane := range 200 {
			now := rate
			if pane > 100 {
				now = rate - .12
			}
			rows := make([]row, rng.IntN(60))
			for i := range rows {
				rows[i] = row{1 - rng.Float64(), 1, rng.Float64() < now}
			}
			want := slow.observe(rows, eps)
			e, err := fast.Observe(int64(pane), paneOf(t, rows, 15))
			if err != nil {
				t.Fatal(err)
			}
			got := fast.LogE()
			if e != nil {
				got = e.LogE
				alarms++
				clear(slow.r)
				if e.Direction == 1 || len(e.Bins) != 1 || math.Abs(e.Bins[0].Recent.Confidence-rate) > 1e-6 {
					t.Errorf("rate %v: evidence %+v", rate, e)
				}
			}
			if want == 0 && math.IsInf(got, -1) {
				continue
			}
			if !(math.Abs(got-math.Log(want)) <= tolerance*(1+math.Abs(math.Log(want)))) {
				t.Fatalf("rate %v, pane %d: log e-value %v, row by row %v", rate, pane, got, math.Log(want))
			}
		}
		if alarms == 0 {
			t.Errorf("rate %v: no alarm after a fall by .12", rate)
		}
	}
}

// TestFairAccuracy: whatever rate the null allows, no bet has an expectation above 1, after any past.
func TestFairAccuracy(t *testing.T) {
	for _, ref := range []Reference{{Accuracy: .8}, {Accuracy: .8, AccuracySlack: .01}, {Accuracy: 0}, {Accuracy: 1},
		{Accuracy: .985, AccuracySlack: .002}} {
		for _, eps := range []float64{.005, .02, .2} {
			d, err := New(Spec{Null: NullAccuracy, Epsilon: eps, Reference: &ref})
			if err != nil {
				t.Fatal(err)
			}
			fair := func(ch chord) {
				least := max(0, ref.Accuracy-eps-ref.AccuracySlack)
				for i := range 41 {
					p := least + (1-least)*float64(i)/40
					if e := expectation(ch, p, ref.Accuracy); !(e <= 1+rounding) {
						t.Fatalf("%+v, ε %v, rate %v: expectation is 1 + %g, allowed 1", ref, eps, p, e-1)
					}
				}
			}
			for _, x := range d.dict.experts {
				if x.kind != Adaptive {
					fair(x.chords[0])
				}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			chords := make([]chord, 1)
			for trial := range 300 {
				past := randomPast(rng, 1, trial)
				past[0].c = past[0].n * ref.Accuracy
				d.dict.adaptiveBin(d.dict.bins, chords, past, math.MaxUint64)
				fair(chords[0])
			}
		}
	}
}

// TestLower: a test whose level is lowered is the test of a reference that was lower, and by 0 it is as it was; a pane
// at a lower level brings no bet that is unfair at the level itself.
func TestLower(t *testing.T) {
	newTest := func(accuracy float64) *Detector {
		d, err := New(Spec{Null: NullAccuracy, Reference: &Reference{Accuracy: accuracy, AccuracySlack: .003}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	lowered, plain, low := newTest(.9), newTest(.9), newTest(.75)
	rng := rand.New(rand.NewPCG(6, 2))
	for pane := range int64(300) {
		rows := make([]row, 40)
		for i := range rows {
			rows[i] = row{.9, 1, rng.Float64() < .72}
		}
		lowered.Lower(.15)
		got, err := lowered.Observe(pane, paneOf(t, rows, 15))
		if err != nil {
			t.Fatal(err)
		}
		want, err := low.Observe(pane, paneOf(t, rows, 15))
		if err != nil {
			t.Fatal(err)
		}
		if (got != nil) != (want != nil) || math.Abs(lowered.LogE()-low.LogE()) > 1e-6*(1+math.Abs(low.LogE())) {
			t.Fatalf("pane %d: log e-value %v, that of a lower reference is %v", pane, lowered.LogE(), low.LogE())
		}
	}
	lowered.Lower(0)
	for k := range plain.dict.experts {
		x, p := &plain.dict.experts[k], Pane{{N1: 3, C1: 2.7, N0: 2, C0: 1.8}}
		if got, _ := lowered.expertLogE(x, p, 1); x.kind != Adaptive {
			if want, _ := plain.expertLogE(x, p, 1); got != want {
				t.Errorf("expert %d: log e-value %v, want %v", k, got, want)
			}
		}
	}
	b := accuracyBin(plain.dict.spec, .15)
	for _, x := range globalExcess {
		chord := b.fallChord(.02, x)
		for _, p := range []float64{.9 - .023, .95, 1} {
			if e := expectation(chord, p, .75); !(e <= 1+rounding) {
				t.Errorf("excess %v, rate %v: expectation is 1 + %g, allowed 1", x, p, e-1)
			}
		}
	}
}

// TestRiseOfAccuracy: a model that becomes better is no alarm, and no evidence of one.
func TestRiseOfAccuracy(t *testing.T) {
	d, err := New(Spec{Null: NullAccuracy, Reference: &Reference{Accuracy: .7}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(6, 1))
	for pane := range 300 {
		rows := make([]row, 100)
		for i := range rows {
			rows[i] = row{.9, 1, rng.Float64() < .9}
		}
		e, err := d.Observe(int64(pane), paneOf(t, rows, 15))
		if err != nil || e != nil || d.LogE() > 0 {
			t.Fatalf("pane %d: alarm %v, log e-value %v, error %v", pane, e, d.LogE(), err)
		}
	}
}

func TestAccuracyRefused(t *testing.T) {
	for _, r := range []*Reference{nil, {Accuracy: 1.1}, {Accuracy: math.NaN()}, {Accuracy: .5, AccuracySlack: -1}} {
		if _, err := New(Spec{Null: NullAccuracy, Reference: r}); !errors.Is(err, ErrSpec) {
			t.Errorf("reference %+v: %v, want ErrSpec", r, err)
		}
	}
	a, err := New(Spec{Null: NullAccuracy, Reference: &Reference{Accuracy: .5}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Spec{Null: NullAccuracy, Reference: &Reference{Accuracy: .6}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.UnmarshalBinary(state); err == nil {
		t.Error("state of a detector with another reference was taken")
	}
}
