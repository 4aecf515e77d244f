package apply

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
)

const second = int64(1e9)

// TestPublishedIsBounded: however many calibrators are published, and in whatever order they come, the newest are kept,
// and each row has the newest of those that were in force at its event time.
func TestPublishedIsBounded(t *testing.T) {
	const n = 500
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	rng := rand.New(rand.NewPCG(1, 1))
	p := NewPublished(0)
	order := make([]int, n)
	for i := range order {
		order[i] = i + 1
	}
	for i := range order { // neighbours change places, and some come twice
		j := min(n-1, i+rng.IntN(4))
		order[i], order[j] = order[j], order[i]
	}
	order = append(order, n, n/2, n-3)
	for _, revision := range order {
		cal, err := json.Marshal(map[string]any{"version": 1, "method": "temperature",
			"temperature": 1 + float64(revision)/n})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Put(m, Publication{Revision: revision, From: int64(revision) * second, Encoded: cal}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(p.by[m]); got != keptRevisions {
		t.Errorf("%d calibrators are kept, want %d", got, keptRevisions)
	}
	if l, _, ok := p.Newest(m); !ok || l.Revision != n || l.From != n*second {
		t.Errorf("the latest is %+v", l)
	}
	for at := int64(1); at <= n+5; at++ {
		want := min(at, n) // the plain reference: all of them
		got := p.Now(m).At(at*second, 3, arrowio.ID{})
		if old := want <= n-keptRevisions; old != (got == nil) || got != nil && int64(got.Revision) != want {
			t.Errorf("a row of %d s has %s, want %d", at, fmt.Sprintf("%+v", got), want)
		}
	}
}

// TestPublishedForgets: what is forgotten changes the answer for no row within the bound, and a version that is out of
// service is left with one calibrator and its correction.
func TestPublishedForgets(t *testing.T) {
	const late = 20 * second
	encoded := [][]byte{batchtest.Temperature(t, 2), batchtest.Temperature(t, 3),
		[]byte(`{"version":1,"method":"vector","params":{"w":[1,2],"b":[0,0]}}`),
		[]byte(`{"version":1,"method":"vector","params":{"w":[1,2,3],"b":[0,0,0]}}`)}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p, all := NewPublished(late), NewPublished(0)
		both := func(do func(p *Published) error) {
			t.Helper()
			for _, p := range []*Published{p, all} {
				if err := do(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		versions := []arrowio.ModelKey{{Model: "m", Version: "old"}, {Model: "m", Version: "new"}}
		newest, revision := int64(0), map[arrowio.ModelKey]int{}
		for i := range 200 {
			m := versions[1]
			if i < 60 && rng.IntN(2) == 0 {
				m = versions[0]
			}
			from := int64(i+100)*second - rng.Int64N(3*second)
			newest = max(newest, from)
			p.added += keptRevisions // all are looked at with each publication
			switch rng.IntN(5) {
			case 0, 1:
				revision[m]++
				pub := Publication{Revision: revision[m], From: from, Encoded: encoded[rng.IntN(len(encoded))]}
				both(func(p *Published) error { return p.Put(m, pub) })
			case 2:
				pub := Publication{Canary: true, From: from, Share: .5, Encoded: encoded[0]}
				both(func(p *Published) error { return p.Put(m, pub) })
				pub = Publication{Canary: true, From: from + second}
				both(func(p *Published) error { return p.Put(m, pub) })
			default:
				top := Top{Revision: max(0, revision[m]-rng.IntN(3)), From: from,
					Correction: corrected(rng.Float64())}
				both(func(p *Published) error { return p.Correct(m, top) })
			}
			for range 20 {
				m, at, k := versions[rng.IntN(2)], newest-rng.Int64N(late), 2+rng.IntN(2)
				id := arrowio.HashID(fmt.Sprint(rng.Uint64()))
				got, want := p.Now(m).At(at, k, id), all.Now(m).At(at, k, id)
				if (got == nil) != (want == nil) || got != nil && !reflect.DeepEqual(*got, *want) {
					t.Fatalf("seed %d, after %d: a row of %s at %d s has %+v, want %+v", seed, i, m.Version, at/second,
						got, want)
				}
			}
			for _, m := range versions {
				got, _, _ := p.Newest(m)
				if want, _, _ := all.Newest(m); !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, after %d: the latest of %s is %+v, want %+v", seed, i, m.Version, got, want)
				}
			}
		}
		old := versions[0]
		if was := len(all.by[old]); was < 5 || len(p.by[old]) > 3 || len(p.by[old]) >= was || p.canaries[old] != nil {
			t.Errorf("seed %d: the old version has %d calibrators of %d, canary %+v", seed, len(p.by[old]), was,
				p.canaries[old])
		}
		if n := len(p.tops[old]); n > len(p.by[old])+1 {
			t.Errorf("seed %d: the old version has %d corrections of %d calibrators", seed, n, len(p.by[old]))
		}
	}
}

func TestPublishedByEventTime(t *testing.T) {
	p := NewPublished(0)
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	put := func(revision int, from int64, temperature float64) {
		t.Helper()
		encoded := batchtest.Temperature(t, temperature)
		if err := p.Put(m, Publication{Revision: revision, From: from, Encoded: encoded}); err != nil {
			t.Fatal(err)
		}
	}
	var id arrowio.ID
	put(1, 100, 2)
	put(2, 200, 3)
	put(2, 200, 3) // the topic is read again after a restart
	now := p.Now(m)
	if now.At(99, 2, id) != nil || now.At(100, 2, id).Revision != 1 || now.At(200, 2, id).Revision != 2 ||
		len(p.by[m]) != 2 || p.Now(arrowio.ModelKey{Model: "m", Version: "w"}).At(500, 2, id) != nil {
		t.Errorf("table %+v", p.by)
	}
	if err := p.Put(m, Publication{Revision: 3, From: 300, Encoded: []byte("{}")}); err == nil {
		t.Error("a calibrator that is none was taken")
	}
}

// corrected moves the log-odds of the top confidence.
func corrected(intercept float64) calibrator.Correction {
	return calibrator.Correction{TopCorrection: calibrator.TopCorrection{Slope: 1, Intercept: intercept}}
}

// TestTopCorrections: a row has the newest correction of its event time, of the calibrator that serves it and no other,
// in whatever order the two come; a new revision is without one; one that changes nothing ends them.
func TestTopCorrections(t *testing.T) {
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	var id arrowio.ID
	z := []float64{2, 0}
	put := func(p *Published, revision int, temperature float64) {
		t.Helper()
		encoded := batchtest.Temperature(t, temperature)
		from := int64(revision) * 100
		if err := p.Put(m, Publication{Revision: revision, From: from, Encoded: encoded}); err != nil {
			t.Fatal(err)
		}
	}
	correct := func(p *Published, revision int, from int64, intercept float64) {
		t.Helper()
		if err := p.Correct(m, Top{Revision: revision, From: from, Correction: corrected(intercept)}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func(p *Published){
		func(p *Published) { put(p, 1, 2) },
		func(p *Published) { put(p, 2, 4) },
		func(p *Published) { correct(p, 0, 50, -1) },
		func(p *Published) { correct(p, 1, 120, .5) },
		func(p *Published) { correct(p, 1, 150, 0) },
		func(p *Published) { correct(p, 2, 250, 1) },
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := NewPublished(0)
		for _, i := range rng.Perm(len(steps)) {
			steps[i](p)
			if rng.IntN(3) == 0 {
				steps[i](p) // the topic is read again
			}
		}
		for _, c := range []struct {
			at, revision     int64
			odds, correction float64
		}{{10, 0, 2, 0}, {50, 0, 2, -1}, {99, 0, 2, -1}, {100, 1, 1, 0}, {120, 1, 1, .5}, {149, 1, 1, .5},
			{150, 1, 1, 0}, {200, 2, .5, 0}, {250, 2, .5, 1}, {900, 2, .5, 1}} {
			out := []float64{.5, .5}
			revision := 0
			if f := p.Now(m).At(c.at, 2, id); f != nil {
				f.Calibrator.Apply(out, z)
				revision = f.Revision
			} else {
				calibrator.Identity{}.Apply(out, z)
			}
			odds := math.Log(out[0] / out[1])
			if want := max(c.odds+c.correction, 0); revision != int(c.revision) || math.Abs(odds-want) > 1e-5 {
				t.Fatalf("a row of %d has the odds %g by revision %d, want %g by %d", c.at, odds, revision, want,
					c.revision)
			}
		}
		l, changed, ok := p.Newest(m)
		if !ok || l.Revision != 2 || l.Top == nil || l.Top.From != 250 || l.Top.Correction.Intercept != 1 {
			t.Fatalf("the latest is %+v", l)
		}
		correct(p, 2, 300, -1)
		select {
		case <-changed:
		default:
			t.Error("a correction wakes nobody")
		}
		put(p, 3, 1)
		if l, _, _ := p.Newest(m); l.Top != nil {
			t.Errorf("a new revision has %+v", l.Top)
		}
	}
	p := NewPublished(0)
	correct(p, 0, 50, 1)
	if l, _, ok := p.Newest(m); !ok || l.Revision != 0 || l.Top == nil || l.Calibrator == nil {
		t.Errorf("on top of the identity: %+v, %v", l, ok)
	}
	if err := p.Correct(m, Top{Correction: calibrator.Correction{Power: -1}}); err == nil {
		t.Error("a power below 0 was taken")
	}
	for i := range 1000 {
		correct(p, 0, int64(i), 1)
	}
	if n := len(p.tops[m]); n != keptRevisions {
		t.Errorf("%d corrections are kept", n)
	}
}
