package detect

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func newTestAlarm(t testing.TB, s AlarmSpec) *Alarm {
	t.Helper()
	a, err := NewAlarm(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func stateOf(t testing.TB, a *Alarm) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func observe(t testing.TB, a *Alarm, id int64, p Pane) *Fired {
	t.Helper()
	f, err := a.Observe(id, p, nil)
	if err != nil {
		t.Fatalf("pane %d: %v", id, err)
	}
	return f
}

// TestOrderOfRows: the state is the same bytes whatever the order of a pane's rows and their split over shards.
func TestOrderOfRows(t *testing.T) {
	a := newTestAlarm(t, AlarmSpec{})
	b := a.Fresh()
	rng := rand.New(rand.NewPCG(1, 1))
	for pane := range 40 {
		rows := drawRows(rng, 200, -.1)
		observe(t, a, int64(pane), paneOf(t, rows, a.Bins()))
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		observe(t, b, int64(pane), paneOf(t, rows, b.Bins()))
	}
	if !bytes.Equal(stateOf(t, a), stateOf(t, b)) {
		t.Error("order of rows inside panes changed the state")
	}
}

// TestRestart encodes and decodes after every pane; alarms and bytes equal those of a run without.
func TestRestart(t *testing.T) {
	for _, spec := range []AlarmSpec{{Alpha: 1e-3}, {Alpha: 1e-3, Ever: true},
		{Alpha: 1e-3, EpsilonBin: .01, EpsilonECE: .01, Reference: ramp(15, .2, nil)}} {
		a := newTestAlarm(t, spec)
		b := a.Fresh()
		rng := rand.New(rand.NewPCG(2, 1))
		fired := 0
		for pane := range 80 {
			p := paneOf(t, drawRows(rng, rng.IntN(300), -.004*float64(pane)), a.Bins())
			fa, fb := observe(t, a, int64(pane), p), observe(t, b, int64(pane), p)
			if (fa == nil) != (fb == nil) {
				t.Fatalf("pane %d: fired %v, after restarts %v", pane, fa != nil, fb != nil)
			}
			if fa != nil {
				fired++
			}
			state := stateOf(t, b)
			if !bytes.Equal(state, stateOf(t, a)) {
				t.Fatalf("pane %d: state differs after restart", pane)
			}
			b = a.Fresh()
			if err := b.UnmarshalBinary(state); err != nil {
				t.Fatal(err)
			}
		}
		if fired == 0 {
			t.Error("no alarm: too little was compared")
		}
	}
}

// TestExtremePanes: everything stays finite, encodable and silent or loud as it should be.
func TestExtremePanes(t *testing.T) {
	full := func(n, acc, at float64) Pane {
		p := make(Pane, 15)
		for j := range p {
			c := (float64(j) + at) / 15
			n1 := math.Floor(n * min(1, max(0, c+acc)))
			p[j] = BinSums{n1, n1 * c, n - n1, (n - n1) * c}
		}
		return p
	}
	one := make(Pane, 15)
	one[14] = BinSums{N0: 1, C0: 1}
	for _, c := range []struct {
		name  string
		p     Pane
		alarm bool
	}{
		{"empty", make(Pane, 15), false},
		{"one wrong row a pane, at confidence 1", one, true},
		{"1e9 rows a bin, calibrated", full(1e9, 0, .5), false},
		{"1e9 rows a bin, at the lower edges", full(1e9, 0, 0), false},
		{"1e9 rows a bin, at the upper edges", full(1e9, 0, 1), false},
		{"1e9 rows a bin, off by .3", full(1e9, -.3, .5), true},
		{"1e9 rows a bin, all wrong", full(1e9, -1, .5), true},
		{"1e9 rows a bin, all right", full(1e9, 1, .5), true},
	} {
		a := newTestAlarm(t, AlarmSpec{})
		fired := false
		for pane := range 50 {
			fired = observe(t, a, int64(pane), c.p) != nil || fired
			for _, d := range []*Detector{a.Headline, a.Diagnosis} {
				if e := d.LogE(); math.IsNaN(e) || math.IsInf(e, 1) {
					t.Fatalf("%s: log e-value is %v", c.name, e)
				}
			}
			if err := a.UnmarshalBinary(stateOf(t, a)); err != nil {
				t.Fatalf("%s: own state is refused: %v", c.name, err)
			}
		}
		if fired != c.alarm {
			t.Errorf("%s: alarm %v, want %v", c.name, fired, c.alarm)
		}
	}
}

// TestRefused: sums that no rows have, and panes out of order, leave the detector as it was.
func TestRefused(t *testing.T) {
	a := newTestAlarm(t, AlarmSpec{})
	observe(t, a, 7, paneOf(t, drawRows(rand.New(rand.NewPCG(1, 1)), 100, 0), 15))
	before := stateOf(t, a)
	for name, c := range map[string]struct {
		id  int64
		sum BinSums
	}{
		"NaN":                   {8, BinSums{N1: math.NaN()}},
		"infinite":              {8, BinSums{N1: math.Inf(1), C1: math.Inf(1)}},
		"negative":              {8, BinSums{N0: -1, C0: -.5}},
		"confidence out of bin": {8, BinSums{N0: 2, C0: 1}},
		"out of order":          {6, BinSums{}},
	} {
		p := make(Pane, 15)
		p[3] = c.sum
		if _, err := a.Observe(c.id, p, nil); !errors.Is(err, ErrPane) {
			t.Errorf("%s: error %v, want ErrPane", name, err)
		}
	}
	if _, err := a.Observe(8, make(Pane, 10), nil); !errors.Is(err, ErrPane) {
		t.Errorf("10 bins: error %v, want ErrPane", err)
	}
	if !bytes.Equal(before, stateOf(t, a)) {
		t.Error("a refused pane changed the state")
	}
}

func TestSpecRefused(t *testing.T) {
	for name, s := range map[string]Spec{
		"null": {Null: 7}, "bins": {Bins: 7}, "many bins": {Bins: 3600}, "epsilon": {Epsilon: .7},
		"negative epsilon": {Epsilon: -1},
		"NaN epsilon":      {Epsilon: math.NaN()}, "alpha": {Alpha: 1}, "NaN alpha": {Alpha: math.NaN()},
		"reference": {Reference: &Reference{Bias: make([]float64, 3)}}, "bias": {Reference: ramp(15, 2, nil)},
		"slack":          {Reference: ramp(15, .1, []float64{1})},
		"negative slack": {Reference: ramp(15, .1, append(make([]float64, 14), -1))},
	} {
		if _, err := New(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: error %v, want ErrSpec", name, err)
		}
	}
	if _, err := NewAlarm(AlarmSpec{Headline: 1}); !errors.Is(err, ErrSpec) {
		t.Errorf("headline share of 1: error %v, want ErrSpec", err)
	}
}

// TestOtherSpecification: state belongs to its specification.
func TestOtherSpecification(t *testing.T) {
	state := stateOf(t, newTestAlarm(t, AlarmSpec{}))
	for name, s := range map[string]AlarmSpec{
		"epsilon": {EpsilonECE: .01}, "alpha": {Alpha: 1e-3}, "ever": {Ever: true},
		"reference": {Reference: ramp(15, .1, nil)}, "bins": {Bins: 10},
	} {
		if err := newTestAlarm(t, s).UnmarshalBinary(state); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", name, err)
		}
	}
}

// TestLocalisation: one bin off by .3 from pane 100 on, of 15. The diagnosis names the bin, the direction, and about
// when.
func TestLocalisation(t *testing.T) {
	a := newTestAlarm(t, AlarmSpec{})
	rng := rand.New(rand.NewPCG(9, 9))
	for pane := range 2000 {
		rows := drawRows(rng, 100, 0)
		if pane >= 100 {
			for i := range rows {
				if c := rows[i].c; c > 9./15 && c <= 10./15 {
					rows[i].a = rng.Float64() < c-.3
				}
			}
		}
		f := observe(t, a, int64(pane), paneOf(t, rows, 15))
		if f == nil {
			continue
		}
		if pane < 100 {
			t.Fatalf("false alarm at pane %d", pane)
		}
		best := 0
		for j, b := range f.Diagnosis.Bins {
			if b.LogE > f.Diagnosis.Bins[best].LogE {
				best = j
			}
		}
		b := f.Diagnosis.Bins[best]
		if best != 9 || b.Direction != -1 {
			t.Errorf("alarm at pane %d names bin %d direction %d, want 9, -1", pane, best, b.Direction)
		}
		if b.Since < 80 || b.Since > 115 {
			t.Errorf("alarm at pane %d says since %d, true 99", pane, b.Since)
		}
		if b.Recent.Gap > -.15 {
			t.Errorf("gap of the bin is %v, want near -.3", b.Recent.Gap)
		}
		return
	}
	t.Fatal("no alarm")
}

// TestGroupWeights: g predictions of one outcome count as one row at most. With weight 1/g a calibrated stream of
// groups has no more alarms than allowed; with weight 1 it has, which is why the weights are there.
func TestGroupWeights(t *testing.T) {
	const g, alpha = 20, 1e-3
	alarms := func(w float64) (n int) {
		d, err := New(Spec{Null: NullECE, Alpha: alpha})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(4, 4))
		for pane := range 2000 {
			var rows []row
			for range 5 {
				c := .5 + .5*rng.Float64()
				a := rng.Float64() < c
				for range g {
					rows = append(rows, row{c, w, a})
				}
			}
			e, err := d.Observe(int64(pane), paneOf(t, rows, 15))
			if err != nil {
				t.Fatal(err)
			}
			if e != nil {
				n++
			}
		}
		return n
	}
	if n := alarms(1. / g); n > 2 { // the bound is an expectation of 2
		t.Errorf("%d alarms in 2,000 panes with weights 1/g, expected at most %v", n, 2000*alpha)
	}
	if n := alarms(1); n < 20 {
		t.Errorf("%d alarms with weight 1: the test does not show what weights are for", n)
	}
}

func FuzzAlarmUnmarshal(f *testing.F) {
	a := newTestAlarm(f, AlarmSpec{Bins: 2})
	f.Add(stateOf(f, a))
	rng := rand.New(rand.NewPCG(1, 1))
	for pane := range 20 {
		observe(f, a, int64(pane), paneOf(f, drawRows(rng, 50, -.1), 2))
	}
	good := stateOf(f, a)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{})
	for range 20 {
		bad := bytes.Clone(good)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		f.Add(bad)
	}
	next := paneOf(f, drawRows(rng, 50, -.1), 2)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := a.Fresh()
		if err := n.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v, want ErrCorrupt", err)
			}
			if !bytes.Equal(stateOf(t, n), stateOf(t, a.Fresh())) {
				t.Fatal("a rejected blob changed the receiver")
			}
			return
		}
		if !bytes.Equal(stateOf(t, n), b) {
			t.Fatal("an accepted blob does not encode to itself")
		}
		if _, err := n.Observe(math.MaxInt64, next, nil); err != nil {
			t.Fatal(err)
		}
		if e := n.Headline.LogE(); math.IsNaN(e) {
			t.Fatal("log e-value is NaN")
		}
	})
}
