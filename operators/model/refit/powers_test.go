package refit

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// temperatures has panes of rows of k classes whose logits are the true log-probabilities over a temperature.
func temperatures(k int, panes, n int, of func(row int) float64) (out [][]acc.SampleRow) {
	r := rand.New(rand.NewPCG(uint64(k), 78))
	z, p := make([]float64, k), make([]float64, k)
	for at := range panes {
		var rows []acc.SampleRow
		for i := range n {
			for j := range z {
				z[j] = 2 * r.NormFloat64()
			}
			calibrator.Identity{}.Apply(p, z)
			y, u := int32(0), r.Float64()-p[0]
			for ; u >= 0 && int(y) < k-1; u -= p[y] {
				y++
			}
			ts := int64(at)*paneLength + int64(i)
			row := acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8), byte(at), byte(at >> 8)}, TS: ts, LabelTS: ts,
				W: 1, Y: y}
			for j := range p {
				row.Z = append(row.Z, float32(math.Log(p[j])/of(at*n+i)))
			}
			rows = append(rows, row)
		}
		out = append(out, rows)
	}
	return out
}

// scored is the mean NLL of rows, by the scores alone, as followed, and by one online temperature, whose map is that of
// before the pane.
type scored struct{ alone, followed, rival float64 }

func followTemperatures(t *testing.T, k int, panes [][]acc.SampleRow) (s scored) {
	f := newFixture(t, followConfig(), k)
	latest := uncorrected
	rival := newPowers(k)
	rival.Of, rival.Weights = rival.Of[:1], []float64{0, 1} // the quickest alone
	n, q, p := 0.0, make([]float64, k), make([]float64, k)
	for at, rows := range panes {
		kept := rival.mean()
		for i := range rows {
			row := &rows[i]
			z := make([]float64, k)
			for j, x := range row.Z {
				z[j] = float64(x)
			}
			calibrator.Identity{}.Apply(q, z)
			s.alone -= math.Log(q[row.Y])
			copy(p, q)
			latest.Apply(p)
			s.followed -= math.Log(p[row.Y])
			if slices.Index(p, slices.Max(p)) != slices.Index(q, slices.Max(q)) {
				t.Fatalf("%v became %v", q, p)
			}
			copy(p, q)
			(&calibrator.Correction{Power: kept, TopCorrection: uncorrected.TopCorrection}).Apply(p)
			s.rival -= math.Log(p[row.Y])
			learnPowers(rival, q, int(row.Y), 1)
			rival.Weights = []float64{0, 1}
			n++
		}
		f.key.Keep(rows, sampleRows)
		f.pane(int64(at), rows)
		for _, c := range f.followed() {
			latest = correctionOf(c)
		}
		if at%20 == 0 {
			f.throughState(k)
		}
	}
	s.alone, s.followed, s.rival = s.alone/n, s.followed/n, s.rival/n
	return s
}

// throughState puts the state through a checkpoint.
func (f *fixture) throughState(k int) {
	f.t.Helper()
	state, err := f.Append(nil)
	f.must(err)
	f.State = f.stage.NewState(f.version)
	in := binenc.NewReader(state)
	f.must(f.Restore(&in))
	if again, err := f.Append(nil); err != nil || string(again) != string(state) {
		f.t.Fatalf("a state of %d bytes became %d, %v", len(state), len(again), err)
	}
	if top := f.corrections.following; top != nil && len(top.powers.p) != k {
		f.t.Fatalf("restored powers are of %d classes, want %d", len(top.powers.p), k)
	}
}

// TestFollowTemperature: where all scores become sharper and flatter, what is served is about as good as an online
// temperature, which knows of nothing else, and where nothing changes it costs next to nothing.
func TestFollowTemperature(t *testing.T) {
	for _, k := range []int{3, 4, 10} {
		sine := followTemperatures(t, k, temperatures(k, 120, 100, func(row int) float64 {
			return math.Pow(2, math.Sin(2*math.Pi*float64(row)/6000))
		}))
		t.Logf("K = %d, a sine: %+v", k, sine)
		if sine.followed > sine.rival+.003 || sine.followed > sine.alone-.02 {
			t.Errorf("K = %d, a sine: %+v", k, sine)
		}
		still := followTemperatures(t, k, temperatures(k, 120, 100, func(int) float64 { return 1 }))
		t.Logf("K = %d, calibrated: %+v", k, still)
		if still.followed > still.alone+.002 {
			t.Errorf("K = %d, calibrated: %+v", k, still)
		}
	}
}

// TestPowersBound: on any stream the mean power loses at most what fixed share promises more than each of those that it
// is mixed from, the one that changes nothing too.
func TestPowersBound(t *testing.T) {
	const k, n = 5, 60
	for name, of := range map[string]func(row int) float64{
		"calibrated": func(int) float64 { return 1 },
		"turns":      func(row int) float64 { return []float64{1, .4, 2.5}[row/1500%3] },
	} {
		s, q := newPowers(k), make([]float64, k)
		lost, by := 0.0, make([]float64, len(s.Weights))
		for _, rows := range temperatures(k, n, 100, of) {
			for _, row := range rows {
				z := make([]float64, k)
				for j, x := range row.Z {
					z[j] = float64(x)
				}
				calibrator.Identity{}.Apply(q, z)
				loss := func(power float64) float64 {
					p := slices.Clone(q)
					calibrator.LogRatios(p, p)
					l := -power * p[row.Y]
					return l - math.Log(calibrator.Raise(p, p, power).Top)
				}
				lost += loss(s.mean())
				by[0] += loss(1)
				for i, x := range s.Of {
					by[1+i] += loss(x.Beta)
				}
				learnPowers(s, q, int(row.Y), 1)
			}
		}
		m := float64(len(s.Weights))
		for i, x := range by {
			if most := x + math.Log(m) - n*100*math.Log(1-followShare+followShare/m) + 1e-6; lost > most {
				t.Errorf("%s: power %d loses %.2f, the mean %.2f, allowed %.2f", name, i, x, lost, most)
			}
		}
		if name == "turns" && !(lost < slices.Min(by)+5) {
			t.Errorf("turns: the mean loses %.2f, its powers %.2f", lost, by)
		}
	}
}

// learnPowers updates powers by a row.
func learnPowers(s *powers, q []float64, y int, w float64) (conf float64) {
	z := make([]float64, len(q))
	calibrator.LogRatios(z, q)
	return s.update(q, z, y, w)
}

// TestPowersStep: labels that nothing explains move a power by at most powerStep a row, and weights count as rows do.
func TestPowersStep(t *testing.T) {
	s := newPowers(3)
	for _, w := range []float64{1, followMost, 0} {
		for range 200 {
			was := slices.Clone(s.Of)
			conf := learnPowers(s, []float64{1, 0, 0}, 1, w)
			for i, x := range s.Of {
				if d := math.Abs(x.Beta - was[i].Beta); !(d <= powerStep) || !(x.A > 0) {
					t.Fatalf("weight %v moved %+v to %+v", w, was[i], x)
				}
			}
			if !(conf >= 0 && conf <= 1 && s.mean() >= 1/calibrator.MaxTemperature) || checkWeights(s.Weights) != nil {
				t.Fatalf("confidence %v, %+v", conf, s)
			}
		}
	}
	if b := s.mean(); b > .3 {
		t.Errorf("600 surprises leave a power of %v", b)
	}
	one, two, q := newPowers(3), newPowers(3), []float64{.5, .3, .2}
	learnPowers(one, q, 1, 2)
	learnPowers(two, q, 1, 1)
	learnPowers(two, q, 1, 1)
	if a, b := one.Of[2].Beta, two.Of[2].Beta; math.Abs(a-b) > 1e-3 || a == 1 {
		t.Errorf("a row of weight 2 gives %v, two rows %v", a, b)
	}
}

// TestStateBeforePowers: a state of before there were powers goes on, and follows them from then on. One that is cut
// off, or not of its version, is refused.
func TestStateBeforePowers(t *testing.T) {
	f := newFixture(t, followConfig(), 4)
	panes := temperatures(4, 30, 100, func(int) float64 { return .5 })
	var served []record.TopCorrection
	for at, rows := range panes[:20] {
		f.pane(int64(at), rows)
		served = append(served, f.followed()...)
	}
	if len(served) == 0 || !(served[len(served)-1].Power < .7) {
		t.Fatalf("nothing to restore: %+v", served)
	}
	f.corrections.following.speeds, _ = newSpeeds(followed) // as before
	old, err := f.corrections.following.append([]byte{3})
	f.must(err)
	old, err = f.corrections.following.appendClasses(old)
	f.must(err)
	back := newFixture(t, followConfig(), 4)
	in := binenc.NewReader(old)
	got, err := restoreFollowing(&in, 4)
	f.must(err)
	if p := got.powers; p == nil || p.mean() != 1 || got.served.Power != 1 || len(got.speeds.Platts) != 3 {
		t.Fatalf("restored %+v", got)
	}
	back.corrections.following = got
	for at, rows := range panes[20:] {
		back.pane(int64(20+at), rows)
	}
	if b := got.powers.mean(); !(b < .8) {
		t.Errorf("from then on a power of %v is followed", b)
	}

	whole, err := f.corrections.following.append([]byte{7})
	f.must(err)
	whole, err = f.corrections.following.appendClasses(whole)
	f.must(err)
	whole, err = f.corrections.following.appendPower(whole)
	f.must(err)
	for n := range len(whole) {
		in := binenc.NewReader(whole[:n])
		if _, err := restoreFollowing(&in, 4); err == nil && in.Err() == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(whole))
		}
	}
	good, err := json.Marshal(newPowers(3))
	f.must(err)
	if _, err := restorePowers(good, 3); err != nil {
		t.Error(err)
	}
	if _, err := restorePowers(good, 2); err == nil {
		t.Error("powers of two classes were taken")
	}
	const three = `{"beta":1,"a":50},{"beta":1,"a":50},{"beta":1,"a":50}`
	for _, bad := range []string{`[]`, `{"powers":[],"weights":[1]}`, `{"powers":[` + three + `],"weights":[1,0,0]}`,
		`{"powers":[` + three + `],"weights":[1,1,0,0]}`, `{"powers":[` + three + `],"weights":[2,-1,0,0]}`,
		`{"powers":[{"beta":30,"a":20},{"beta":1,"a":50},{"beta":1,"a":50}]}`,
		`{"powers":[{"beta":1,"a":0},{"beta":1,"a":50},{"beta":1,"a":50}]}`} {
		if s, err := restorePowers([]byte(bad), 3); err == nil {
			t.Errorf("%s: %+v, want an error", bad, s)
		}
	}
}
