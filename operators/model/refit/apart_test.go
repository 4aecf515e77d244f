package refit

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// rareStream has panes of rows of two classes, about one positive in 100. says is what the scores make of the true
// log-odds of a positive.
func rareStream(seed uint64, panes, n int, says func(pane int, odds float64) float64) (out [][]acc.SampleRow) {
	r := rand.New(rand.NewPCG(seed, 77))
	for at := range panes {
		var rows []acc.SampleRow
		for i := range n {
			odds := -math.Log(99) - 2.2 + 2.2*r.NormFloat64()
			y := int32(0)
			if r.Float64() < 1/(1+math.Exp(-odds)) {
				y = 1
			}
			ts := int64(at)*paneLength + int64(i)
			z := float32(says(at, odds) / 2)
			rows = append(rows, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8), byte(at), byte(at >> 8)}, TS: ts,
				LabelTS: ts, W: 1, Y: y, Z: []float32{-z, z}})
		}
		out = append(out, rows)
	}
	return out
}

// told is what the rows of a predicted class were told in total, and their log loss.
type told struct{ rows, right, told, alone, loss, lossAlone float64 }

func logLossOf(p float64, hit bool) float64 {
	if !hit {
		p = 1 - p
	}
	return -math.Log(p)
}

// followRare runs panes and serves rows as calibrator.Correct does. The state goes through a checkpoint now and then.
func followRare(t *testing.T, panes [][]acc.SampleRow) (by [2]told, apart int) {
	f := newFixture(t, followConfig(), 2)
	var latest record.TopCorrection
	latest.Slope = 1
	for at, rows := range panes {
		cal, err := calibrator.Correct(calibrator.Identity{}, correctionOf(latest))
		f.must(err)
		for i := range rows {
			q, p := make([]float64, 2), make([]float64, 2)
			z := []float64{float64(rows[i].Z[0]), float64(rows[i].Z[1])}
			calibrator.Identity{}.Apply(q, z)
			cal.Apply(p, z)
			top := 0
			if q[1] > q[0] {
				top = 1
			}
			if p[top] < p[1-top] {
				t.Fatalf("%v became %v", q, p)
			}
			hit, c := int(rows[i].Y) == top, &by[top]
			if c.rows++; hit {
				c.right++
			}
			c.told, c.alone = c.told+p[top], c.alone+q[top]
			c.loss, c.lossAlone = c.loss+logLossOf(p[top], hit), c.lossAlone+logLossOf(q[top], hit)
		}
		f.key.Keep(rows, sampleRows)
		f.pane(int64(at), rows)
		for _, c := range f.followed() {
			if latest = c; len(c.Apart) > 0 {
				apart++
			}
		}
		if at%20 == 0 {
			state, err := f.Append(nil)
			f.must(err)
			f.State = f.stage.NewState(f.version)
			in := binenc.NewReader(state)
			f.must(f.Restore(&in))
			if again, err := f.Append(nil); err != nil || !bytes.Equal(again, state) {
				t.Fatalf("pane %d: a state of %d bytes became %d, %v", at, len(state), len(again), err)
			}
		}
	}
	return by, apart
}

// TestFollowFewPositives: what suits the rows that are predicted negative is not told of those predicted positive.
func TestFollowFewPositives(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  func(pane int, odds float64) float64
		apart bool    // it is another map
		most  float64 // nats that rows predicted positive may lose in total
		gains bool    // all rows gain
	}{
		{"calibrated", func(_ int, x float64) float64 { return x }, false, 4, false},
		{"odds × 6", func(_ int, x float64) float64 { return x + math.Log(6) }, true, -50, true},
		{"odds × 4 from pane 100", func(at int, x float64) float64 {
			if at < 100 {
				return x
			}
			return x + math.Log(4)
		}, true, -15, true},
		{"log-odds × 2 and odds × 4", func(_ int, x float64) float64 { return 2*x + math.Log(4) }, true, -5, true},
		{"log-odds × .6", func(_ int, x float64) float64 { return .6 * x }, false, 4, true},
		{"odds / 4", func(_ int, x float64) float64 { return x - math.Log(4) }, false, 6, true},
	} {
		by, apart := followRare(t, rareStream(1, 400, 100, c.says))
		p, n := by[1], by[0]
		t.Logf("%s: %.0f rows predicted positive: right %.3f, told %.3f, alone %.3f; NLL %.1f, alone %.1f",
			c.name, p.rows, p.right/p.rows, p.told/p.rows, p.alone/p.rows, p.loss, p.lossAlone)
		if lost := p.loss - p.lossAlone; lost > c.most {
			t.Errorf("%s: rows predicted positive lose %.1f nats, allowed %.1f", c.name, lost, c.most)
		}
		if all := p.loss + n.loss - p.lossAlone - n.lossAlone; c.gains && all > 0 || all > 20 {
			t.Errorf("%s: all rows lose %.1f nats", c.name, all)
		}
		if (apart > 0) != c.apart {
			t.Errorf("%s: %d corrections have a map for a class, want some: %v", c.name, apart, c.apart)
		}
	}
}

// TestFollowRuns: where the labels come in runs no class goes apart, where they are mixed it does. The negatives are of
// two classes, in turn for 20 panes each or row by row.
func TestFollowRuns(t *testing.T) {
	for _, inRuns := range []bool{false, true} {
		f, apart := newFixture(t, followConfig(), 3), 0
		for at, rows := range rareStream(1, 200, 100, func(_ int, x float64) float64 { return x + math.Log(6) }) {
			for i := range rows {
				row, now := &rows[i], int32(i%2)
				if inRuns {
					now = int32(at / 20 % 2)
				}
				z := []float32{-9, -9, row.Z[1]}
				if z[now] = row.Z[0]; row.Y == 0 {
					row.Y = now
				} else {
					row.Y = 2
				}
				row.Z = z
			}
			f.key.Keep(rows, sampleRows)
			f.pane(int64(at), rows)
			for _, c := range f.followed() {
				apart += len(c.Apart)
			}
		}
		if (apart > 0) == inRuns {
			t.Errorf("in runs: %v; %d times a class has its own map", inRuns, apart)
		}
	}
}

// TestWayBound: the weight of a class's own map is what Bayes' rule with fixed share says, and reaches 1/2 where the
// common map is true in at most one of apartOdds·K streams.
func TestWayBound(t *testing.T) {
	const streams, rows, k = 400, 300, 2
	r, wrong := rand.New(rand.NewPCG(3, 4)), 0
	common, err := newSpeeds(followed)
	if err != nil {
		t.Fatal(err)
	}
	for range streams {
		s, err := newSpeeds(slower)
		if err != nil {
			t.Fatal(err)
		}
		w, most := &way{weight: 1. / (apartOdds * k), speeds: s}, 0.
		for range rows {
			c := .5 + .5*r.Float64()
			row := followedRow{conf: c, hit: r.Float64() < c, w: 1}
			w.weigh(&row, common.top(), 1./(apartOdds*k))
			if err := s.update(row.conf, row.hit, 1); err != nil {
				t.Fatal(err)
			}
			most = max(most, w.weight)
		}
		if most > .5 {
			wrong++
		}
	}
	if limit := streams/(apartOdds*k) + 13; wrong > limit { // three standard errors above the bound
		t.Errorf("%d of %d maps go apart by chance, allowed %d", wrong, streams, limit)
	}
	w := &way{weight: .5, speeds: common}
	row := followedRow{conf: .8, hit: true, w: 2}
	other := calibrator.TopCorrection{Slope: 1, Intercept: -math.Log(4)} // of .8 it makes .5
	w.weigh(&row, other, .05)
	v := .64 / (.64 + .25)
	if want := (1-followShare)*v + followShare*.05; math.Abs(w.weight-want) > 1e-12 {
		t.Errorf("weight %v, want %v", w.weight, want)
	}
}

// TestStateBeforeApart: a state of before classes could go apart goes on, and learns of them from then on.
func TestStateBeforeApart(t *testing.T) {
	f := newFixture(t, followConfig(), 2)
	for at, rows := range rareStream(1, 20, 100, func(_ int, x float64) float64 { return x + math.Log(6) }) {
		f.pane(int64(at), rows)
	}
	old, err := f.corrections.following.append([]byte{1})
	f.must(err)
	in := binenc.NewReader(old)
	got, err := restoreFollowing(&in, 2)
	f.must(err)
	want := f.corrections.following
	if got.speeds.top() != want.speeds.top() || got.apart.rows != 0 || len(got.apart.ways) != 0 {
		t.Errorf("restored %+v", got)
	}
	whole, err := f.corrections.following.append([]byte{3})
	f.must(err)
	whole, err = f.corrections.following.appendClasses(whole)
	f.must(err)
	for n := range len(whole) {
		in := binenc.NewReader(whole[:n])
		if _, err := restoreFollowing(&in, 2); err == nil && in.Err() == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(whole))
		}
	}
	in = binenc.NewReader(whole)
	if _, err := restoreFollowing(&in, 3); err == nil {
		t.Error("a state of 2 classes was taken for 3")
	}
}
