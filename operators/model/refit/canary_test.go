package refit

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestFailedCanariesAreForgotten: canaries that end again and again, with nothing published between them, do not
// accumulate. Rows of the latest ones are scored by the calibrator that served them.
func TestFailedCanariesAreForgotten(t *testing.T) {
	cfg := testConfig()
	cfg.CanaryShare = 1
	x := newFixture(t, cfg, 3)
	v := x.version
	cal, err := calibrator.NewClassWeights(calibrator.Identity{}, []float64{1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := calibrator.Encode(cal)
	if err != nil {
		t.Fatal(err)
	}
	v.Calibrators = []*stage.InForce{{Revision: 1, From: 1, Cal: calibrator.Identity{},
		Encoded: []byte(`{"version":1,"method":"identity"}`)}}
	now := int64(1_700_000_000) * second
	for range 200 {
		x.run = &run{candidates: []*candidate{{fitResult: fitResult{method: cal.Method(), cal: cal, encoded: encoded}}}}
		if err := x.beginCanary(0, now); err != nil {
			t.Fatal(err)
		}
		from := now
		now += 50 * second
		if err := x.endCanary("worse", now); err != nil {
			t.Fatal(err)
		}
		if f := v.At(from, [16]byte{}); f == nil || f.Share == 0 {
			t.Fatalf("a row of the canary that has just ended is scored by %+v", f)
		}
		if f := v.At(now, [16]byte{}); f == nil || f.Revision != 1 || f.Share != 0 {
			t.Fatalf("a row after it is scored by %+v", f)
		}
		now += 10 * second
	}
	// Those of the last 120 s, which rows may still need, and the calibrator in force.
	if n := len(v.Calibrators); n > 4 {
		t.Errorf("%d calibrators are kept after 200 canaries", n)
	}
}

// TestRollbackEndsACanary: from the rollback on all ids have the calibrator that came back, those of the canary too.
func TestRollbackEndsACanary(t *testing.T) {
	cfg := testConfig()
	cfg.CanaryShare, cfg.CanaryFor, cfg.Period, cfg.OnAlarm, cfg.FirstAnswer = .9, time.Hour, 0, false, false
	x := newFixture(t, cfg, 4)
	now := batchtest.Start - second
	for _, temperature := range []float64{2.5, .7} {
		f := inForceAs(t, 0, temperature, reasonAlarm)
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, f.Cal, f.Encoded, now))
	}
	worse := inForceAs(t, 0, .8, reasonPeriod)
	test, err := evalue.NewPaired(nllBound(4, 0), 0)
	x.must(err)
	x.run = &run{base: 2, reason: reasonPeriod, candidates: []*candidate{{test: test,
		fitResult: fitResult{method: "temperature", cal: worse.Cal, encoded: worse.Encoded}}}}
	x.must(x.beginCanary(0, now))
	rows := sample(batchtest.Rows(109, batchtest.Options{N: 600, Sharpness: 2.5}))
	for i := 0; i < len(rows) && x.version.InForceRevision() == 2; i += 20 {
		now = rows[i+19].TS + 1
		x.must(recalibrate(x.State, &stage.Pane{Rows: rows[i : i+20], Labelled: 20, End: now}))
	}
	if f := x.version.Newest(); f.Reason != reasonRollback || x.run != nil {
		t.Fatalf("in force is %+v, run %+v; want a rollback, and no run", f, x.run)
	}
	for _, f := range x.version.Calibrators {
		if f.Share > 0 && f.Until != now {
			t.Errorf("the canary %+v goes on", f)
		}
	}
}
