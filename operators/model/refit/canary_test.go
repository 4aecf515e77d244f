package refit

import (
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
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
