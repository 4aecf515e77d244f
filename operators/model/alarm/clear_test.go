package alarm

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/stage/stagetest"
)

const second = int64(time.Second)

// testConfig returns the default alarm on the given signals.
func testConfig(signals ...string) Config {
	c := setting.Default[Config]()
	c.Signals, c.ReferenceRows, c.ClearRows, c.ClearFor = signals, 1500, 500, 20*time.Second
	return c
}

// testSpec returns the specification for panes of ten seconds.
func testSpec(signals ...string) *spec {
	c := testConfig(signals...)
	return New(&stage.Env{Pane: 10 * second}, &c).cfg
}

// paneOf returns a pane with n correct rows in the last bin.
func paneOf(bins int, n float64) detect.Pane {
	p := make(detect.Pane, bins)
	p[bins-1] = detect.BinSums{N1: n, C1: n}
	return p
}

// TestTrailHoldsTheLatest compares the blocks with all panes. Every suffix of blocks covers some latest panes, the
// number of panes at least doubles every second suffix, and nothing is lost.
func TestTrailHoldsTheLatest(t *testing.T) {
	var tr trail
	for i := 1; i <= 1000; i++ {
		tr.add(paneOf(15, float64(i)))
		if tr.rows() != float64(i*(i+1)/2) || len(tr.blocks) > 2*11 {
			t.Fatalf("%d panes: %v rows in %d blocks", i, tr.rows(), len(tr.blocks))
		}
		var panes, rows int
		for j := len(tr.blocks) - 1; j >= 0; j-- {
			panes += int(tr.blocks[j].panes)
			rows += int(tr.blocks[j].sums.N())
			want := 0
			for p := i; p > i-panes; p-- {
				want += p
			}
			if rows != want {
				t.Fatalf("%d panes: the latest %d have %d rows, want %d", i, panes, rows, want)
			}
			if j >= 2 && tr.blocks[j].panes == tr.blocks[j-2].panes {
				t.Fatalf("%d panes: three blocks of %d", i, tr.blocks[j].panes)
			}
		}
		if panes != i {
			t.Fatalf("%d panes in the blocks, want %d", panes, i)
		}
	}
}

// FuzzState: invalid bytes give an error, and what is read encodes to the same bytes.
func FuzzState(f *testing.F) {
	cfg := testConfig(stage.SignalRaw, stage.SignalCalibrated, stage.SignalAccuracy)
	cfg.Reference, cfg.Matured = Rolling, 20*time.Second
	env := &stage.Env{Pane: 10 * second, Maturity: stage.Maturity{After: int64(cfg.Matured), Pane: 10 * second}}
	fresh := func() *State {
		return New(env, &cfg).NewKey(&stage.Key{Version: &stage.Version{}}).(*State)
	}
	s := fresh()
	s.alarms[0].since.add(paneOf(15, 3))
	s.alarms[0].curve.next = paneOf(15, 4)
	s.alarms[2].curve.stretches = []detect.Stretch{{N: 60, Right: 40}, {N: 7, Right: 7}}
	s.alarms[2].hard.from, s.alarms[2].hard.recent = 7, promised{n: 60, promise: 50, right: 40}
	s.alarms[0].waiting.At(env.Maturity, 7, 7).add(paneOf(15, 2))
	stagetest.FuzzState(f, s, func() stage.KeyState { return fresh() })
}

// TestAnotherSpecification: a firing alert keeps firing, and the tests start without rows.
func TestAnotherSpecification(t *testing.T) {
	old := newKeyAlarm(testSpec(stage.SignalRaw), stage.SignalRaw, false, 0)
	observe(t, old, 1, paneOf(15, 40))
	old.alert.State, old.alert.Since = stage.Firing, 7
	body, err := old.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, epsilon := range []float64{.02, .03} {
		cfg := testSpec(stage.SignalRaw)
		cfg.EpsilonECE = epsilon
		a := newKeyAlarm(cfg, stage.SignalRaw, false, 0)
		alert := a.alert
		if err := a.restore(body, cfg); err != nil {
			t.Fatal(err)
		}
		if same := epsilon == .02; a.alert != alert || a.alert.State != stage.Firing || a.alert.Since != 7 ||
			(a.tests.Headline.Panes() > 0) != same {
			t.Errorf("epsilon %v: alert %+v, %d panes", epsilon, a.alert, a.tests.Headline.Panes())
		}
	}
}
