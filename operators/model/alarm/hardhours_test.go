package alarm

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// A deployment is a stream of a model whose inputs are harder at some hours of each day.
type deployment struct {
	rate  float64                   // rows/s
	days  float64                   // that it lasts
	level func(day float64) float64 // mean true probability of the predicted class
	fault func(day float64) float64 // taken off the probability, which confidences do not show; nil = none
	conf  func(p float64) float64   // the confidence of a row that is right with probability p
	today bool                      // the alarm knows no hard times
	keys  int                       // slices with the same course; 0: a whole version
}

// hours is accuracy .93, and at the middle of each night lower by depth; it is day at the start.
func hours(depth float64) func(float64) float64 {
	return func(day float64) float64 { return .93 - depth*(1-math.Cos(2*math.Pi*day))/2 }
}

// nights has the same levels, and dusk and dawn of a quarter of an hour.
func nights(depth float64) func(float64) float64 {
	return func(day float64) float64 {
		_, f := math.Modf(day + .25)
		return .93 - depth/(1+math.Exp((math.Abs(f-.75)-.2)*400))
	}
}

// difficulty draws true probabilities σ(μ + 1.3 z) with a mean.
type difficulty struct{ odds, at, mean []float64 } // odds: e^(-1.3 z)

func newDifficulty() *difficulty {
	d := &difficulty{}
	rng := rand.New(rand.NewPCG(1, 44))
	for range 4096 {
		d.odds = append(d.odds, math.Exp(-1.3*rng.NormFloat64()))
	}
	for mu := -4.0; mu <= 8; mu += .05 {
		var sum float64
		for _, odds := range d.odds {
			sum += 1 / (1 + math.Exp(-mu)*odds)
		}
		d.at, d.mean = append(d.at, mu), append(d.mean, sum/float64(len(d.odds)))
	}
	return d
}

// mu returns μ of a mean.
func (d *difficulty) mu(mean float64) float64 {
	i, _ := slices.BinarySearch(d.mean, mean)
	i = max(1, min(i, len(d.mean)-1))
	return d.at[i-1] + .05*(mean-d.mean[i-1])/(d.mean[i]-d.mean[i-1])
}

// notice is an alert that fires or ends, in days.
type notice struct{ from, to float64 }

// drawn is shared, as it is the same for all.
var drawn = newDifficulty()

// run returns the alerts of the deployment, of its first key.
func (d deployment) run(t *testing.T, s *spec, seed uint64) (all []notice) {
	t.Helper()
	const pane = 10
	rng, dif := rand.New(rand.NewPCG(seed, 45)), drawn
	alarms := make([]*keyAlarm, max(1, d.keys))
	for i := range alarms {
		alarms[i] = newKeyAlarm(s, stage.SignalAccuracy, d.keys > 0, 0)
	}
	due := 0.0
	for at := 0.0; at < d.days*86400; at += pane {
		day := at / 86400
		against, fault := math.Exp(-dif.mu(d.level(day))), 0.0
		if d.fault != nil {
			fault = d.fault(day)
		}
		due += d.rate * pane
		n := int(due)
		due -= float64(n)
		var logE []float64
		for _, a := range alarms {
			p := alarmPane{id: int64(at+pane) * second, sums: make(detect.Pane, s.Bins)}
			for range n {
				is := 1 / (1 + against*dif.odds[rng.IntN(len(dif.odds))])
				says := is
				if d.conf != nil {
					says = d.conf(is)
				}
				b := &p.sums[max(0, min(s.Bins-1, int(math.Ceil(says*float64(s.Bins)))-1))]
				if rng.Float64() < is-fault {
					b.N1, b.C1 = b.N1+1, b.C1+says
				} else {
					b.N0, b.C0 = b.N0+1, b.C0+says
				}
			}
			if d.today {
				a.hard = newHardTimes()
			}
			a.fired, a.observed = nil, n > 0
			if n > 0 {
				if err := a.observe(s, p); err != nil {
					t.Fatal(err)
				}
			}
			logE = append(logE, a.logE())
		}
		rejected := make([]bool, len(alarms))
		if d.keys > 0 {
			for _, i := range evalue.EBH(logE, s.FDR) {
				rejected[i] = true
			}
		}
		for i, a := range alarms {
			state, changed := a.decide(s, rejected[i], int64(at+pane)*second, pane*second)
			switch {
			case i > 0 || !changed:
			case state == stage.Firing:
				all = append(all, notice{day, math.Inf(1)})
			default:
				all[len(all)-1].to = day
			}
		}
	}
	return all
}

// defaults is the specification of the default configuration, with some reference.
func defaults(reference string) *spec {
	c := setting.Default[Config]()
	c.Reference = reference
	return New(&stage.Env{Pane: 10 * second}, &c).cfg
}

// later is the same course, begun at another time of day.
func later(by float64, level func(float64) float64) func(float64) float64 {
	return func(day float64) float64 { return level(day + by) }
}

// between is x from one day up to another, and 0 else.
func between(from, to, x float64) func(float64) float64 {
	return func(day float64) float64 {
		if day >= from && day < to {
			return x
		}
		return 0
	}
}

// minus takes fall off a level.
func minus(level, fall func(float64) float64) func(float64) float64 {
	return func(day float64) float64 { return level(day) - fall(day) }
}

// deeper has nights of .13 ± .03.
func deeper(day float64) float64 {
	rng := rand.New(rand.NewPCG(uint64(day), 46))
	return hours(.13 + .03*rng.NormFloat64())(day)
}

// weekends are as hard as the worst hours of the other days, for two days and a half.
func weekends(day float64) float64 {
	if in := math.Mod(day, 7); in > 4.5 {
		return .85
	}
	return hours(.08)(day)
}

// TestHardHours: where inputs are harder at some hours of each day, or week, and the confidences show it, there are at
// most two alerts in ten days or more. Without hard times there is one a day.
func TestHardHours(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	pinned := defaults(None)
	for _, c := range []struct {
		name string
		deployment
		*spec
	}{
		{"slightly, at half a row/s", deployment{rate: .5, days: 10, level: hours(.05)}, pinned},
		{"at half a row/s", deployment{rate: .5, days: 10, level: hours(.13)}, pinned},
		{"much, at half a row/s", deployment{rate: .5, days: 10, level: hours(.3)}, pinned},
		{"much and suddenly, at half a row/s", deployment{rate: .5, days: 10, level: nights(.3)}, pinned},
		{"suddenly, at 2 rows/s", deployment{rate: 2, days: 10, level: nights(.13)}, pinned},
		{"at 10 rows/s", deployment{rate: 10, days: 5, level: hours(.13)}, pinned},
		{"slightly, at 10 rows/s", deployment{rate: 10, days: 5, level: hours(.05)}, pinned},
		{"at 100 rows/s", deployment{rate: 100, days: 2.2, level: hours(.13)}, pinned},
		{"begun at dusk", deployment{rate: 2, days: 10, level: later(.25, hours(.13))}, pinned},
		{"begun at dawn", deployment{rate: 2, days: 10, level: later(.75, hours(.13))}, pinned},
		{"overconfident", deployment{rate: 2, days: 10, level: hours(.13), conf: logits(2)}, pinned},
		{"rolling", deployment{rate: .5, days: 10, level: nights(.13)}, defaults(Rolling)},
		{"a slice of four", deployment{rate: .5, days: 10, level: hours(.13), keys: 4}, pinned},
		{"a slice of four, suddenly", deployment{rate: .5, days: 10, level: nights(.13), keys: 4}, pinned},
		{"nights that differ", deployment{rate: 2, days: 14, level: deeper}, pinned},
		{"weekends", deployment{rate: 2, days: 21, level: weekends}, pinned},
	} {
		var n []int
		for seed := range uint64(testsize.Pick(2, 10)) {
			all := c.run(t, c.spec, seed)
			if n = append(n, len(all)); len(all) > 2 {
				t.Errorf("%s, seed %d: alerts at days %.2f", c.name, seed, all)
			}
		}
		all := c.days
		c.today, c.days = true, all/2
		before := len(c.run(t, c.spec, 0))
		if before < max(1, int(c.days)/2) {
			t.Errorf("%s: %d alerts without hard times: nothing is tested", c.name, before)
		}
		t.Logf("%s: %v alerts in %v days, %d in %v without hard times", c.name, n, all, before, c.days)
	}
}

// TestFallOnHardHours: after four hard nights a fall that the confidences do not show is found about as soon as without
// hard times, by day. By night, when without them the alert fires anyway, it is news within hours.
func TestFallOnHardHours(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := defaults(None)
	delay := func(d deployment, from float64) float64 {
		var all []float64
		for seed := range uint64(testsize.Pick(5, 15)) {
			at := math.Inf(1)
			for _, n := range d.run(t, s, seed) {
				if n.to > from {
					at = min(at, max(n.from-from, 0)*86400)
				}
			}
			all = append(all, at)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for _, rate := range []float64{.5, 2} {
		for _, fall := range []float64{.1, .2} {
			day := deployment{rate: rate, days: 5.4, level: nights(.13), fault: between(4.95, 9, fall)}
			night := deployment{rate: rate, days: 5.7, level: nights(.13), fault: between(5.5, 9, fall)}
			now := delay(day, 4.95)
			day.today = true
			before, byNight := delay(day, 4.95), delay(night, 5.5)
			if !(now <= 1.5*before) || !(byNight > 0 && byNight <= 4*before) {
				t.Errorf("%v rows/s, fall by %v: found too late", rate, fall)
			}
			t.Logf("%v rows/s, fall by %v: found after %.0f s by day, %.0f without hard times; by night %.0f", rate,
				fall, now, before, byNight)
		}
	}
}

// TestFallsAgain: a second fall is news unless the confidences showed the first one, and then where it is deeper or
// longer.
func TestFallsAgain(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	two := func(x float64) func(float64) float64 {
		return func(day float64) float64 { return between(1, 1.2, x)(day) + between(2, 2.2, x)(day) }
	}
	steady := hours(0)
	deeper := func(day float64) float64 { return between(1, 1.2, .1)(day) + between(2, 2.2, .2)(day) }
	stays := func(day float64) float64 { return between(1, 1.2, .13)(day) + between(2, 9, .13)(day) }
	for name, c := range map[string]struct {
		level, fault func(float64) float64
		from, to     float64 // of the second alert; from 0 = none
	}{
		"not shown":                     {steady, two(.1), 2, 2.05},
		"partly shown":                  {minus(steady, two(.05)), two(.1), 2, 2.05},
		"shown":                         {minus(steady, two(.13)), nil, 0, 0},
		"deeper":                        {minus(steady, deeper), nil, 2, 2.05},
		"stays":                         {minus(steady, stays), nil, 2.35, 2.6},
		"not shown, after one that was": {minus(steady, between(1, 1.2, .13)), between(2, 2.2, .13), 2, 2.05},
	} {
		for seed := range uint64(3) {
			all := deployment{rate: 2, days: 3, level: c.level, fault: c.fault}.run(t, defaults(None), seed)
			news := len(all) == 2 && all[0].from >= 1 && all[0].to < 2 && all[1].from >= c.from && all[1].from < c.to
			if c.from == 0 {
				news = len(all) == 1
			}
			if !news {
				t.Errorf("%s, seed %d: alerts at days %.3f", name, seed, all)
			}
		}
	}
}

// TestHardTimesRestart: restarts at any time change nothing.
func TestHardTimesRestart(t *testing.T) {
	s := testSpec(stage.SignalAccuracy)
	a, b := newKeyAlarm(s, stage.SignalAccuracy, false, 0), newKeyAlarm(s, stage.SignalAccuracy, false, 0)
	rng := rand.New(rand.NewPCG(3, 47))
	changes := 0
	for pane := range int64(1500) {
		says := .93
		if pane/200%2 == 1 {
			says = .8
		}
		p := alarmPane{id: (pane + 1) * 10 * second, sums: make(detect.Pane, s.Bins)}
		for range 20 {
			if d := &p.sums[int(says*15)]; rng.Float64() < says {
				d.N1, d.C1 = d.N1+1, d.C1+says
			} else {
				d.N0, d.C0 = d.N0+1, d.C0+says
			}
		}
		if x, y := a.step(t, s, p), b.step(t, s, p); x != y {
			t.Fatalf("pane %d: %q, after restarts %q", pane, x, y)
		} else if x != "" {
			changes++
		}
		body, err := b.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		b = newKeyAlarm(s, stage.SignalAccuracy, false, 0)
		if err := b.restore(body, s); err != nil {
			t.Fatal(err)
		}
	}
	if *a.hard != *b.hard || a.hard.known.lasted == 0 || changes != 2 {
		t.Errorf("%d changes, hard times %+v, after restarts %+v", changes, *a.hard, *b.hard)
	}
}

// TestStateWithoutHardTimes: the state of a build that knew none is read, and nothing is known of any.
func TestStateWithoutHardTimes(t *testing.T) {
	s := testSpec(stage.SignalAccuracy)
	old := newKeyAlarm(s, stage.SignalAccuracy, false, 0)
	for pane := range int64(100) {
		old.step(t, s, alarmPane{id: (pane + 1) * 10 * second, sums: paneOf(s.Bins, 40)})
	}
	old.hard = nil
	body, err := old.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newKeyAlarm(s, stage.SignalAccuracy, false, 0)
	if err := a.restore(body, s); err != nil {
		t.Fatal(err)
	}
	if *a.hard != *newHardTimes() || a.tests == nil || a.tests.Headline.Panes() != old.tests.Headline.Panes() {
		t.Errorf("hard times %+v, tests %+v", *a.hard, a.tests)
	}
}

// TestHardTimesInWords: the end of the alert says that the confidences showed the fall, the next alert how far hard
// inputs are allowed for.
func TestHardTimesInWords(t *testing.T) {
	s := testSpec(stage.SignalAccuracy)
	a := newKeyAlarm(s, stage.SignalAccuracy, false, 0)
	a.curve.inForce = &detect.Reference{Accuracy: .93}
	if text := a.resolution(s); strings.Contains(text, "hard") {
		t.Error(text)
	}
	a.hard.fall = fallen{promised{1000, 800, 790}, hardTime{.78, 9}}
	if text := a.resolution(s); !strings.Contains(text, "The confidences showed that inputs were hard") {
		t.Error(text)
	}
	reference, against := .93, .78
	e := &record.AlertEvidence{Reference: Pinned, ReferenceAccuracy: &reference, EpsilonAccuracy: .02,
		AccuracyHard: &against}
	const want = "more than 0.02 below the pinned reference of 0.930 (while inputs are hard: below what the " +
		"confidences promise, down to 0.780)"
	if text := accuracyMessage(&record.Alert{Evidence: e}); !strings.Contains(text, want) {
		t.Error(text)
	}
}
