package refit

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

const quickPane = 50 // rows of a pane in the tests of the first answer

// stepQuickly passes rows to stepQuick, pane by pane, and returns after how many of them it published; 0 = never.
func (f *fixture) stepQuickly(seed uint64, n int, sharpness float64) int {
	f.t.Helper()
	start := batchtest.Start + f.key.Labelled*second
	rows := sample(batchtest.Rows(seed, batchtest.Options{N: n, Sharpness: sharpness, Start: start}))
	for i := 0; i < n; i += quickPane {
		pane := rows[i : i+quickPane]
		for j := range pane {
			pane[j].TS = start + int64(i+j)*second
		}
		f.key.Labelled += quickPane
		f.key.Keep(slices.Clone(pane), sampleRows)
		in := &stage.Pane{End: pane[quickPane-1].TS + 1, Rows: pane, Labelled: quickPane}
		published, err := stepQuick(f.State, in)
		f.must(err)
		if published {
			return i + quickPane
		}
	}
	return 0
}

// TestFirstAnswer: an overconfident model gets a temperature after 100 to 500 rows. When the cause is gone, one near 1
// takes its place as fast, and refits that follow use rows from after that only.
func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	if after := x.stepQuickly(201, 1000, 3); after < 100 || after > 500 {
		t.Fatalf("published after %d rows, want 100 to 500", after)
	}
	if got := x.version.Newest().Cal.(calibrator.Temperature).T(); math.Abs(got-3) > .5 {
		t.Errorf("temperature %v, want about 3", got)
	}
	x.stepQuickly(202, 2000, 3)
	healed := batchtest.Start + x.key.Labelled*second
	for len(x.published(pipeline.StreamCalibrators)) < 4 {
		// Saved and restored, it goes on as before.
		b, err := x.State.Append(nil)
		x.must(err)
		back := x.stage.NewState(x.version)
		in := binenc.NewReader(b)
		x.must(back.Restore(&in))
		x.State = back
		if x.stepQuickly(uint64(x.key.Labelled), 100, 1); batchtest.Start+x.key.Labelled*second > healed+600*second {
			break
		}
	}
	c := x.published(pipeline.StreamCalibrators)
	last := c[len(c)-1]
	if last.Reason != "quick" || math.Abs(last.Evidence.Temperature-1) > .4 {
		t.Errorf("600 rows after the change %+v is in force, want a temperature of about 1", last)
	}
	if since := (x.changes.latest() - healed) / second; since < -150 || since > 300 {
		t.Errorf("later refits begin %d rows after the change", since)
	}
}

// TestNoFirstAnswer: nothing takes force by itself where it must be served to nobody, or to few, first, where another
// method is asked for, or where a person has pinned the calibrator.
func TestNoFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"canary": func(x *fixture) { x.stage.cfg.CanaryShare = .1 },
		"shadow": func(x *fixture) { x.stage.cfg.ShadowFor = time.Second },
		"method": func(x *fixture) { x.stage.cfg.Method = "vector" },
		"none":   func(x *fixture) { x.stage.cfg.Method = MethodNone },
		"pin":    func(x *fixture) { x.pin = &pin{by: "somebody"} },
	} {
		x := newFixture(t, testConfig(), 4)
		change(x)
		if after := x.stepQuickly(201, 1000, 3); after != 0 {
			t.Errorf("%s: published after %d rows", name, after)
		}
	}
}

// TestFirstAnswersOnCalibratedRows: while the calibrator in force is right, the evidence reaches 1/α at most α·n/h
// times among n rows.
func TestFirstAnswersOnCalibratedRows(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const runs, n, h, alpha = 20, 5000, 100., .5
	v := &stage.Version{Model: "m", Name: "v", K: 4}
	reached := 0
	for seed := range uint64(runs) {
		k, q := &stage.Key{Version: v, K: 4}, newQuick()
		rows := sample(batchtest.Rows(300+seed, batchtest.Options{N: n, Sharpness: 1}))
		for i := 0; i < n; i += quickPane {
			pane := rows[i : i+quickPane]
			if err := q.bet(v, pane, h); err != nil {
				t.Fatal(err)
			}
			k.Keep(slices.Clone(pane), sampleRows)
			if err := q.learn(k, quickPane); err != nil {
				t.Fatal(err)
			}
			if q.evidence() >= math.Log(1/alpha) {
				reached++
				q.restart()
			}
		}
	}
	if most := alpha * n / h * runs; reached == 0 || float64(reached) > most {
		t.Errorf("reached %d times, want 1 to %.0f", reached, most)
	}
}

// TestPatience: the evidence must last longer with every turn, and longest where a richer method is in force. Turns are
// forgotten.
func TestPatience(t *testing.T) {
	t.Parallel()
	q := newQuick()
	temperature := func(v float64) calibrator.Calibrator {
		c, err := calibrator.NewTemperature(v)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := func(current calibrator.Calibrator, next float64, rows int64, up, turns int) {
		t.Helper()
		if r, u, n := q.patience(current, next); r != rows || u != up || n != turns {
			t.Errorf("%d rows, direction %d, %d turns; want %d, %d, %d", r, u, n, rows, up, turns)
		}
	}
	want(nil, 2, 100, 1, 0)
	q.up = 1
	want(temperature(2), 3, 100, 1, 0)
	want(temperature(2), 1, 150, -1, 1)
	q.turn(1)
	want(temperature(2), 3, 150, 1, 0)
	want(&calibrator.Platt{}, 3, 525, 1, richTurns)
	q.rows = turnRows + 1
	want(temperature(2), 3, 100, 1, 0)
	if q.turn(2 * keptTurns); len(q.turns) != keptTurns {
		t.Errorf("%d turns are kept", len(q.turns))
	}
	want(temperature(2), 3, mostPatience, 1, 0)
}
