package refit

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// followed removes and returns the corrections of the top confidence.
func (f *fixture) followed() (out []record.TopCorrection) {
	for _, m := range f.outputs {
		if r, ok := m.Record.(*record.TopCorrection); ok && m.Stream == pipeline.StreamTops {
			if want := "m/v/top"; string(m.Key) != want {
				f.t.Errorf("key %s, want %s", m.Key, want)
			}
			var back record.TopCorrection
			f.must(json.Unmarshal(m.Value, &back))
			if !reflect.DeepEqual(back, *r) {
				f.t.Errorf("%+v was written as %+v", *r, back)
			}
			out = append(out, back)
		}
	}
	f.outputs = nil
	return out
}

func correctionOf(r record.TopCorrection) calibrator.Correction {
	c := calibrator.Correction{Power: r.Power,
		TopCorrection: calibrator.TopCorrection{Slope: r.Slope, Intercept: r.Intercept}}
	for _, x := range r.Apart {
		c.Apart = append(c.Apart, calibrator.ClassCorrection{Class: x.Class,
			TopCorrection: calibrator.TopCorrection{Slope: x.Slope, Intercept: x.Intercept}})
	}
	return c
}

// twoClasses are rows of a pane whose top confidence is c, of which a share is right.
func twoClasses(r *rand.Rand, pane int64, n int, c, right float64) (rows []acc.SampleRow) {
	for i := range n {
		y := int32(0)
		if r.Float64() >= right {
			y = 1
		}
		ts := pane*paneLength + int64(i)
		rows = append(rows, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8), byte(pane)}, TS: ts, LabelTS: ts, W: 1,
			Y: y, Z: []float32{float32(math.Log(c / (1 - c))), 0}})
	}
	return rows
}

// pane steps one pane of rows without anything else that a refit does.
func (f *fixture) pane(at int64, rows []acc.SampleRow) {
	f.t.Helper()
	f.must(f.Step(&stage.Pane{Index: at, End: (at + 1) * paneLength, Rows: rows}))
}

func followConfig() Config { return Config{Method: MethodNone, Follow: true, Alpha: .05} }

// TestFollow: the correction follows outcomes down and up again, is published when it moves and not else, ends with a
// pin, with its calibrator and with the key, and goes on after a restore byte for byte.
func TestFollow(t *testing.T) {
	f := newFixture(t, followConfig(), 2)
	r := rand.New(rand.NewPCG(1, 1))
	var latest record.TopCorrection
	at := int64(0)
	run := func(panes int, right float64) (published int) {
		for range panes {
			f.pane(at, twoClasses(r, at, 100, .9, right))
			for _, c := range f.followed() {
				latest, published = c, published+1
				if c.EffectiveFrom != record.At((at+1)*paneLength) || c.Published || c.Stage != record.StageTop {
					t.Errorf("pane %d: %+v", at, c)
				}
			}
			at++
		}
		return published
	}
	serves := func() float64 { return correctionOf(latest).Map(.9) }
	latest.Slope = 1
	if run(20, .6); math.Abs(serves()-.6) > .05 {
		t.Errorf("of .9, of which .6 are right, it makes %.3f", serves())
	}
	if run(20, .9); math.Abs(serves()-.9) > .04 {
		t.Errorf("when .9 are right again it makes %.3f", serves())
	}
	// Outcomes as even as can be: what has been learnt does not move, and nothing is published.
	even := func() (published int) {
		for range 30 {
			rows := twoClasses(r, at, 100, .9, 1)
			for i := 5; i < len(rows); i += 10 {
				rows[i].Y = 1
			}
			f.pane(at, rows)
			published += len(f.followed())
			at++
		}
		return published
	}
	even()
	if quiet := even(); quiet > 1 {
		t.Errorf("%d corrections where nothing moves", quiet)
	}
	run(10, .6)

	state, err := f.Append(nil)
	f.must(err)
	back := newFixture(t, followConfig(), 2)
	in := binenc.NewReader(state)
	f.must(back.Restore(&in))
	again, err := back.Append(nil)
	if err != nil || !bytes.Equal(state, again) {
		t.Errorf("a state of %d bytes became %d, %v", len(state), len(again), err)
	}
	rows := twoClasses(r, at, 100, .9, .95)
	f.pane(at, rows)
	back.pane(at, rows)
	if a, b := f.followed(), back.followed(); len(a) != 1 || len(b) != 1 || !reflect.DeepEqual(a[0], b[0]) {
		t.Errorf("after a restore %+v, without %+v", b, a)
	}
	at++

	f.pin = &pin{by: "x"}
	f.pane(at, rows)
	if c := f.followed(); len(c) != 1 || c[0].Slope != 1 || c[0].Intercept != 0 || f.corrections.following != nil {
		t.Errorf("a pin leaves %+v", c)
	}
	f.pane(at+1, rows)
	if c := f.followed(); len(c) != 0 {
		t.Errorf("it ends twice: %+v", c)
	}
	back.must(back.Forget("gone", at*paneLength))
	if c := back.followed(); len(c) != 1 || c[0].Slope != 1 || c[0].Intercept != 0 {
		t.Errorf("a version out of service keeps %+v", c)
	}
}

// TestFollowBeginsAnew: a calibrator that takes force is served as it was tested, and followed from then on, by its own
// rows only; one that must not be corrected is not.
func TestFollowBeginsAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	f := newFixture(t, followConfig(), 2)
	for at := range int64(10) {
		f.pane(at, twoClasses(r, at, 100, .9, .6))
	}
	if len(f.followed()) == 0 {
		t.Fatal("nothing was followed")
	}
	in := inForceAs(t, 1, 2, reasonQuick)
	in.From = 10 * paneLength
	f.version.Calibrators = append(f.version.Calibrators, in)
	f.pane(10, twoClasses(r, 9, 100, .9, .6)) // predicted before it took force
	f.pane(11, twoClasses(r, 9, 100, .9, .6))
	if c := f.followed(); len(c) != 0 {
		t.Errorf("rows of another calibrator made %+v", c)
	}
	for at := int64(12); at < 30; at++ {
		f.pane(at, twoClasses(r, at, 100, .9, .6))
	}
	all := f.followed()
	if len(all) == 0 || all[len(all)-1].Revision != 1 {
		t.Fatalf("%+v", all)
	}
	if c := correctionOf(all[len(all)-1]).Map(.75); math.Abs(c-.6) > .05 { // .9 at temperature 2
		t.Errorf("of .75, of which .6 are right, it makes %.3f", c)
	}
	weights, err := calibrator.NewClassWeights(calibrator.Identity{}, []float64{1, 3})
	f.must(err)
	f.version.Calibrators = append(f.version.Calibrators,
		&stage.InForce{Revision: 2, From: 30 * paneLength, Cal: weights})
	for at := int64(30); at < 40; at++ {
		f.pane(at, twoClasses(r, at, 100, .9, .6))
	}
	if c := f.followed(); len(c) != 0 {
		t.Errorf("class weights were corrected: %+v", c)
	}
}

// TestFollowedToTheWrongSide: a difficulty that turns as fast as corrections come is followed in antiphase. The account
// ends that, for longer each time, and online says what was served, with labels late or not.
func TestFollowedToTheWrongSide(t *testing.T) {
	const panes, rows, conf = 80, 500, .8
	lost := func(t *testing.T, late int64, counted bool) (sum float64, ends int) {
		cfg := followConfig()
		cfg.FreshRows = 1000
		f, r := newFixture(t, cfg, 2), rand.New(rand.NewPCG(5, 5))
		f.stage.env.FinalAfter = 10 * paneLength
		var served []record.TopCorrection
		var all, loss float64
		sent := map[int64][]acc.SampleRow{}
		for at := range int64(panes) {
			sent[at] = twoClasses(r, at, rows, conf, conf+.15*float64(1-2*(at/(late+1)%2)))
			for i := range sent[at] {
				sent[at][i].LabelTS += late * paneLength
			}
			for i := range sent[at-late] {
				row := &sent[at-late][i]
				top := uncorrected
				for _, c := range served {
					if c.EffectiveFrom.UnixNano() <= row.TS {
						top = correctionOf(c)
					}
				}
				told, hit := top.Map(float64(float32(conf))), row.Y == 0
				before := conf
				if !hit {
					told, before = 1-told, 1-conf
				}
				all, loss, sum = all+1, loss-math.Log(told), sum+math.Log(before)-math.Log(told)
			}
			f.pane(at, sent[at-late])
			if !counted {
				f.corrections.cost = account{}
			}
			state, err := f.Append(nil)
			f.must(err)
			f.State = f.stage.NewState(f.version)
			in := binenc.NewReader(state)
			f.must(f.Restore(&in))
			served = append(served, f.followed()...)
		}
		if got := f.Online(); got == nil || math.Abs(got.LogLoss-loss/all) > 1e-6 || float64(got.Rows) != all {
			t.Errorf("online is %+v, want log loss %v of %v rows as served", got, loss/all, all)
		}
		for _, c := range served {
			if c := correctionOf(c); c.None() {
				ends++
			}
		}
		return sum, ends
	}
	for _, late := range []int64{0, 2} {
		free, _ := lost(t, late, false)
		bound, ends := lost(t, late, true)
		if free < 500 || bound > free/2 || ends < 2 || ends > 6 {
			t.Errorf("labels %d panes late: %.0f nats lost where nothing counts, %.0f else, ended %d times", late, free,
				bound, ends)
		}
	}
}

// TestFollowWeighs: a row counts by its weight, and the scale of all weights does not matter. Of the rows of .9, those
// of weight 1 are right as often as they say and the others, nine times as many of weight .01, in .5.
func TestFollowWeighs(t *testing.T) {
	follow := func(heavy, light float32) (served record.TopCorrection, published int) {
		f, r := newFixture(t, followConfig(), 2), rand.New(rand.NewPCG(7, 7))
		served.Slope = 1
		for at := range int64(40) {
			rows := twoClasses(r, at, 100, .9, .5)
			for i := range rows {
				if rows[i].W = light; i%10 == 0 {
					rows[i].W, rows[i].Y = heavy, 0
					if r.Float64() > .9 {
						rows[i].Y = 1
					}
				}
			}
			f.key.Keep(rows, sampleRows)
			f.pane(at, rows)
			for _, c := range f.followed() {
				served, published = c, published+1
			}
		}
		return served, published
	}
	even, n := follow(1, 1)
	if got := correctionOf(even).Map(.9); math.Abs(got-.54) > .06 { // .1·.9 + .9·.5
		t.Errorf("rows of one weight: of .9, of which .54 are right, it makes %.3f", got)
	}
	if got, m := follow(1./1024, 1./1024); !reflect.DeepEqual(got, even) || m != n {
		t.Errorf("with all weights 1/1024 %+v after %d, with 1 %+v after %d", got, m, even, n)
	}
	weighed, n := follow(1, .01)
	if got := correctionOf(weighed).Map(.9); math.Abs(got-.867) > .06 { // (.1·.9 + .009·.5)/.109
		t.Errorf("of .9, of whose weight .867 is right, it makes %.3f", got)
	}
	if got, m := follow(1024, 10.24); m != n || math.Abs(got.Slope-weighed.Slope) > 1e-5 ||
		math.Abs(got.Intercept-weighed.Intercept) > 1e-5 { // weights are float32
		t.Errorf("with all weights times 1024 %+v after %d, else %+v after %d", got, m, weighed, n)
	}
}

// TestFollowsLabelsInTheirOrder: where labels of wrong rows come sooner, what is learnt last are the newest labels, not
// the labels of the newest predictions, which are those of wrong rows only. Rows of an age have no such order.
func TestFollowsLabelsInTheirOrder(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Follow = true
	x := newFixture(t, cfg, 2)
	at := func(ts, label int64) acc.SampleRow {
		return acc.SampleRow{TS: ts, LabelTS: label, W: 1, Z: []float32{1, 0}}
	}
	in := &stage.Pane{Rows: []acc.SampleRow{at(1, 9), at(2, 3), at(4, 5)}, End: 30}
	for i := range int64(orderedRows) {
		in.Rows = append(in.Rows, at(10+i, 10+i))
	}
	for _, c := range []struct {
		wrongLag, after int64
		want            []int64
	}{{1, 0, []int64{2, 4, 1}}, {7, 0, []int64{1, 2, 4}}, {1, 7, []int64{1, 2, 4}}} {
		x.key.Sample = nil
		for i := range int64(500) {
			row := at(i, i+7)
			if i%4 == 0 {
				row.Y, row.LabelTS = 1, i+c.wrongLag
			}
			x.key.Keep([]acc.SampleRow{row}, 500)
		}
		x.stage.env.Maturity.After = c.after
		rows, err := x.corrections.scored(in)
		x.must(err)
		var got []int64
		for i := range rows {
			if rows[i].ts < 10 {
				got = append(got, rows[i].ts)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: predictions of %d are learnt in this order", c, got)
		}
	}
}

// TestFollowOfBiasedLabels: when labels of one class no longer come, the correction ends, and one decision says so
// until that has been over for an hour.
func TestFollowOfBiasedLabels(t *testing.T) {
	f, r := newFixture(t, followConfig(), 2), rand.New(rand.NewPCG(3, 3))
	predictions := int64(0) // of each pane, labelled or not
	f.key.Covered = func(int64, int64) (stage.Coverage, error) {
		return stage.Coverage{Predictions: predictions, Labelled: min(predictions, 100)}, nil
	}
	at := int64(0)
	run := func(panes int, right float64, unlabelled int64) (decisions []record.Calibrator, ends int) {
		for range panes {
			predictions = 100 + unlabelled
			rows := twoClasses(r, at, 100, .9, right)
			f.key.Keep(rows, 500)
			f.pane(at, rows)
			decisions = append(decisions, f.published(pipeline.StreamDecisions)...)
			for _, c := range f.followed() {
				if c.Slope == 1 && c.Intercept == 0 {
					ends++
				}
			}
			at++
		}
		return decisions, ends
	}
	if d, ends := run(20, .6, 0); len(d) > 0 || ends > 0 || f.corrections.following.served.None() {
		t.Fatalf("a fair sample: %d ends, %+v", ends, d)
	}
	for _, c := range []struct {
		name      string
		later     int64 // panes
		decisions int
	}{{"first", 0, 1}, {"soon again", 0, 0}, {"an hour later", 400, 1}} {
		at += c.later
		run(20, .6, 0)
		d, ends := run(20, 1, 900)
		if ends != 1 || f.corrections.following != nil || len(d) != c.decisions {
			t.Fatalf("%s: it ended %d times: %+v", c.name, ends, d)
		}
		for _, d := range d {
			want := "no change: the labels that came are no fair sample of the predictions, so the corrections of " +
				"the probabilities between refits end: "
			if d.Published || d.Reason != record.ReasonLabels || !strings.HasPrefix(d.Outcome, want) ||
				!strings.Contains(d.Outcome, " labels are of class 1, where the scores expect ") {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
		f.delays = stage.Delays{Seen: 5, Slow: 4, Newest: 3, Steady: 2}
		state, err := f.Append(nil)
		f.must(err)
		back, in := newFixture(t, followConfig(), 2), binenc.NewReader(state)
		if f.must(back.Restore(&in)); back.withheld != f.withheld || back.delays != f.delays {
			t.Errorf("%s: withheld at %d, %v is restored as %d, %v", c.name, f.withheld, f.delays, back.withheld,
				back.delays)
		}
	}
}
