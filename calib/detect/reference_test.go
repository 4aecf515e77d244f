package detect

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
)

// row is one labelled row of weight w.
type row struct {
	c, w float64
	a    bool
}

// paneOf sums rows by the grid, as the stream does.
func paneOf(t testing.TB, rows []row, m int) Pane {
	t.Helper()
	var g acc.Grid
	for _, r := range rows {
		if err := g.Add(r.c, r.w, r.a); err != nil {
			t.Fatal(err)
		}
	}
	p, err := FromGrid(&g, m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drawRows draws n rows of confidence in (0,1]; skew moves the rate of right ones off the confidence.
func drawRows(rng *rand.Rand, n int, skew float64) []row {
	rows := make([]row, n)
	for i := range rows {
		c := 1 - rng.Float64()*rng.Float64()
		rows[i] = row{c, 1, rng.Float64() < c+skew}
	}
	return rows
}

// slow is the construction of docs/math.md row by row in plain float64, R not in log space, nothing shared or skipped.
// It is for few rows: R overflows.
type slow struct {
	s      Spec
	panes  int
	global [][]float64 // by expert and bin: θ
	dirs   []float64
	local  []slowLocal
	r      []float64 // global, then local, then adaptive
	w      []float64
	past   [2][]remembered
}

type slowLocal struct {
	bin              int
	s, theta, weight float64
}

func (s *slow) tol(j int) float64 {
	_, slack := referenceOf(s.s, j)
	return s.s.Epsilon + margin + slack
}

func (s *slow) beta(j int) float64 {
	b, _ := referenceOf(s.s, j)
	return b
}

func (s *slow) mid(j int) float64 { return (float64(j)+.5)/float64(s.s.Bins) + s.beta(j) }

func (s *slow) cap(j int, dir float64) float64 {
	lo, hi := float64(j)/float64(s.s.Bins)-margin, float64(j+1)/float64(s.s.Bins)+margin
	if dir > 0 {
		return .9 / math.Max(hi+s.beta(j)+s.tol(j), .05)
	}
	return .9 / math.Max(1-lo-s.beta(j)+s.tol(j), .05)
}

func (s *slow) theta(j int, dir, p float64) float64 {
	q := math.Min(math.Max(s.mid(j)+dir*s.tol(j), .005), .995)
	return math.Min(math.Max(0, dir*(p-q)/(q*(1-q))), s.cap(j, dir))
}

func newSlow(spec Spec) *slow {
	s := &slow{s: spec}
	for h := range s.past {
		s.past[h] = make([]remembered, spec.Bins)
	}
	shares := 0.0
	betting := spec.Bins // bins from this one on have no bet
	add := func(dir float64, p func(j int) float64) {
		th := make([]float64, spec.Bins)
		any := false
		for j := range th[:betting] {
			th[j] = s.theta(j, dir, p(j))
			any = any || th[j] > 0
		}
		if any {
			s.global, s.dirs = append(s.global, th), append(s.dirs, dir)
		}
	}
	weighted := func(weight, dir float64, p func(j int) float64) {
		before := len(s.global)
		if add(dir, p); len(s.global) > before {
			s.w = append(s.w, weight)
		}
	}
	for i, k := range []float64{.25, .5, .65, .8, 1.25, 1.5, 2} {
		weight := 1.0
		if i < 2 {
			weight = []float64{6, 2}[i]
		}
		dir := 1.0
		if k < 1 {
			dir = -1
		}
		weighted(weight, dir, func(j int) float64 {
			m := math.Min(math.Max(s.mid(j), .005), .995)
			// Softmax of (Δ, 0, 0, 0) is m for Δ = log(3m/(1-m)); the rate is that of (kΔ, 0, 0, 0).
			top := math.Pow(3*m/(1-m), k)
			return top / (top + 3)
		})
	}
	for _, f := range []float64{.3, .5} {
		weighted(2, -1, func(j int) float64 { return f * s.mid(j) })
	}
	for _, dir := range []float64{1, -1} {
		for _, d := range []float64{.02, .04, .08, .18} {
			weighted(1, dir, func(j int) float64 { return s.mid(j) + dir*(spec.Epsilon+d) })
		}
		for j := range spec.Bins {
			for _, d := range []float64{.08, .18, .38} {
				if p := s.mid(j) + dir*(spec.Epsilon+d); p > 1e-9 && p < 1-1e-9 && s.theta(j, dir, p) > 0 {
					weight := 1.0
					if d == .18 {
						weight = 2
					}
					s.local = append(s.local, slowLocal{j, dir, s.theta(j, dir, p), weight})
					shares += weight
				}
			}
		}
	}
	const groups = 6.25 + 1 + 3 + 1
	var global float64
	for _, w := range s.w {
		global += w
	}
	for k := range s.w {
		s.w[k] *= 6.25 / groups / global
	}
	all := len(s.global)
	betting = int(.94 * float64(spec.Bins)) // the bins whose upper ends are at most .94
	for _, dir := range []float64{1, -1} {
		for _, d := range []float64{.02, .04, .08} {
			add(dir, func(j int) float64 { return s.mid(j) + dir*(spec.Epsilon+d) })
		}
	}
	for range s.global[all:] {
		s.w = append(s.w, 1/groups/float64(len(s.global)-all))
	}
	for _, l := range s.local {
		s.w = append(s.w, 3/groups*l.weight/shares)
	}
	s.w = append(s.w, .5/groups, .5/groups)
	s.r = make([]float64, len(s.w))
	return s
}

// bet returns the chord of the bet of direction g and stake θ on bin j at confidence c.
func (s *slow) bet(j int, theta, g, drift, c float64, a bool) float64 {
	lo, hi := float64(j)/float64(s.s.Bins)-margin, float64(j+1)/float64(s.s.Bins)+margin
	y := 0.0
	if a {
		y = 1
	}
	f := func(c float64) float64 { return math.Log(1 + theta*(g*(y-c-s.beta(j))-drift)) }
	return f(lo) + (f(hi)-f(lo))*(c-lo)/(hi-lo)
}

// observe returns Σ w R after the pane; k runs in the order of r.
func (s *slow) observe(rows []row) float64 {
	if len(rows) == 0 {
		return s.total()
	}
	s.panes++
	inject := 1.0
	if s.s.Ever {
		inject = 1 / float64(s.panes) / float64(s.panes+1)
	}
	for k := range s.r {
		l, bets := 0.0, false
		for _, r := range rows {
			j := min(int(math.Ceil(r.c*float64(s.s.Bins)))-1, s.s.Bins-1)
			theta, dir := s.thetaOf(k, j)
			if theta > 0 {
				l += r.w * s.bet(j, theta, dir, s.tol(j), r.c, r.a)
				bets = true
			}
		}
		if bets {
			s.r[k] = (s.r[k] + inject) * math.Exp(l)
		}
	}
	s.remember(rows)
	total := s.total()
	if total >= 1/s.s.Alpha && !s.s.Ever {
		clear(s.r)
	}
	return total
}

func (s *slow) thetaOf(k, j int) (theta, dir float64) {
	if k < len(s.global) {
		return s.global[k][j], s.dirs[k]
	}
	if k -= len(s.global); k < len(s.local) {
		if s.local[k].bin != j {
			return 0, 0
		}
		return s.local[k].theta, s.local[k].s
	}
	p := s.past[k-len(s.local)][j]
	r := (p.a - p.c - s.beta(j)*p.n) / (p.n + 10)
	dir = 1
	if r < 0 {
		dir = -1
	}
	return s.theta(j, dir, s.mid(j)+r), dir
}

func (s *slow) total() float64 {
	var sum float64
	for k, r := range s.r {
		sum += s.w[k] * r
	}
	return sum
}

func (s *slow) remember(rows []row) {
	var n float64
	for _, r := range rows {
		n += r.w
	}
	for h, life := range []float64{1000, 8000} {
		for j := range s.past[h] {
			p := &s.past[h][j]
			f := math.Pow(.5, n/life)
			p.n, p.c, p.a = p.n*f, p.c*f, p.a*f
		}
		for _, r := range rows {
			p := &s.past[h][min(int(math.Ceil(r.c*float64(s.s.Bins)))-1, s.s.Bins-1)]
			p.n += r.w
			p.c += r.w * r.c
			if r.a {
				p.a += r.w
			}
		}
	}
}

// fastAndSlow are the detector of a specification and the construction written out, with the defaults filled in.
func fastAndSlow(t *testing.T, s Spec) (Spec, *Detector, *slow) {
	t.Helper()
	s, err := s.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, d, newSlow(s)
}

// TestAgainstRows compares the detector, which sees sums, with the construction written out row by row.
func TestAgainstRows(t *testing.T) {
	// Sums are rounded to 2^-32 a row; slopes reach 100 a unit of confidence, and R is a product over 3,000 rows.
	const tolerance = 1e-5
	for _, s := range []Spec{
		{Null: NullBin, Alpha: 1e-4}, {Null: NullBin, Epsilon: .02, Alpha: 1e-3, Bins: 10},
		{Null: NullBin, Alpha: 1e-4, Ever: true},
		{Null: NullBin, Epsilon: .01, Alpha: 1e-3, Reference: ramp(15, .2, slacks(15))},
	} {
		s, fast, ref := fastAndSlow(t, s)
		if got, want := len(fast.state), len(ref.r); got != want {
			t.Fatalf("%d experts, want %d", got, want)
		}
		rng := rand.New(rand.NewPCG(5, 6))
		alarms := 0
		for pane := range 120 {
			skew := 0.0
			if pane > 60 {
				skew = -.3
			}
			rows := drawRows(rng, rng.IntN(50), skew)
			for i := range rows {
				rows[i].w = float64(1+rng.IntN(4)) / 4
			}
			ev, err := fast.Observe(int64(pane), paneOf(t, rows, s.Bins))
			if err != nil {
				t.Fatal(err)
			}
			want := math.Log(ref.observe(rows))
			got := fast.LogE()
			if ev != nil {
				got = ev.LogE
				alarms++
			}
			if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) && !(math.IsInf(got, -1) && math.IsInf(want, -1)) {
				t.Fatalf("%v pane %d: log e-value %v, row by row %v", s.Null, pane, got, want)
			}
			if len(rows) > 0 && (ev != nil) != (want >= fast.Threshold()) {
				t.Fatalf("%v pane %d: alarm %v at %v, threshold %v", s.Null, pane, ev != nil, want, fast.Threshold())
			}
		}
		if alarms == 0 {
			t.Fatal("no alarm in a stream with an error of .3: nothing was compared there")
		}
	}
}

// TestDictionarySize keeps the dictionary that docs/math.md describes: 95 experts before those that never bet are
// dropped.
func TestDictionarySize(t *testing.T) {
	d, err := New(Spec{Null: NullBin, Epsilon: .001})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(d.dict.experts); got != 95 {
		t.Errorf("NullBin has %d experts, want 95", got)
	}
	for _, s := range nullSpecs {
		d, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		var w float64
		for _, x := range d.dict.experts {
			w += math.Exp(x.logWeight)
		}
		if math.Abs(w-1) > 1e-12 {
			t.Errorf("%+v: weights sum to %v", s, w)
		}
	}
}

// TestAgainstRowsECE does the same for NullECE with its dictionary written out; see TestAgainstRows for the tolerance.
func TestAgainstRowsECE(t *testing.T) {
	const tolerance = 1e-5
	s, fast, ref := fastAndSlow(t, Spec{Null: NullECE, Alpha: 1e-4})
	r := make([]float64, 17)
	rng := rand.New(rand.NewPCG(7, 8))
	alarms := 0
	for pane := range 150 {
		skew := 0.0
		if pane > 80 {
			skew = -.15
		}
		rows := drawRows(rng, 1+rng.IntN(60), skew)
		var total float64
		for k := range r {
			theta, g, w := slowECE(ref, k)
			l := 0.0
			for _, x := range rows {
				j := min(int(math.Ceil(x.c*float64(s.Bins)))-1, s.Bins-1)
				if theta > 0 {
					l += ref.bet(j, theta, g(j), s.Epsilon+margin, x.c, x.a)
				}
			}
			if theta > 0 {
				r[k] = (r[k] + 1) * math.Exp(l)
			}
			total += w * r[k]
		}
		ref.remember(rows)
		if total >= 1/s.Alpha {
			clear(r)
		}
		ev, err := fast.Observe(int64(pane), paneOf(t, rows, s.Bins))
		if err != nil {
			t.Fatal(err)
		}
		got := fast.LogE()
		if ev != nil {
			alarms++
			got = ev.LogE
		}
		if want := math.Log(total); !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
			t.Fatalf("pane %d: log e-value %v, row by row %v", pane, got, want)
		}
	}
	if alarms == 0 {
		t.Fatal("no alarm in a stream with an error of .15")
	}
}

// slowECE returns stake, direction by bin and weight of expert k: 13 fixed ones, then half-life by shyness.
func slowECE(s *slow, k int) (theta float64, g func(j int) float64, w float64) {
	most := .9 / (1 + s.s.Epsilon + margin)
	if k < 13 {
		ramp := []float64{0, 0, 0, 2, 2, 2, 0, 0, 0, 2, 2, 1.5, 1.5}[k]
		dir, weight := 1.0, 1.0
		if k >= 6 {
			dir = -1
		}
		if k >= 7 {
			weight = 1.5
		}
		theta = math.Min([]float64{.05, .1, .2, .4, .57, .8, .05, .1, .2, .3, .4, .57, .8}[k], most)
		return theta, func(j int) float64 {
			if ramp == 0 {
				return dir
			}
			return dir * math.Min(1, ramp*s.mid(j))
		}, .6 * weight / 16
	}
	past, shy := s.past[(k-13)/2], []float64{0, .4}[(k-13)%2]
	var n, growth, variance float64
	gs := make([]float64, len(past))
	for _, p := range past {
		n += p.n
	}
	for j, p := range past {
		if p.n == 0 {
			continue
		}
		m := p.c / p.n
		v := math.Max(m*(1-m), .005)
		sd := math.Sqrt(v / (p.n + 1))
		r := (p.a - p.c) / (p.n + 1)
		gs[j] = math.Min(1, math.Max(-1, r/sd))
		growth += p.n / n * (gs[j]*r - shy*math.Abs(gs[j])*sd)
		variance += p.n / n * gs[j] * gs[j] * v
	}
	if variance > 0 {
		theta = math.Min(math.Max(0, (growth-s.s.Epsilon-margin)/variance), most)
	}
	return theta, func(j int) float64 { return gs[j] }, .1
}
