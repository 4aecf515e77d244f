package stage_test

import (
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"
)

func TestCalibratorInForceByEventTime(t *testing.T) {
	v := &stage.Version{}
	for i, from := range []int64{100, 200, 300} {
		v.Calibrators = append(v.Calibrators, &stage.InForce{Revision: i + 1, From: from})
	}
	at := func(want map[int64]int) {
		t.Helper()
		for ts, revision := range want {
			got := 0
			if f := v.At(ts, [16]byte{}); f != nil {
				got = f.Revision
			}
			if got != revision {
				t.Errorf("revision %d in force at %d, want %d", got, ts, revision)
			}
		}
	}
	at(map[int64]int{0: 0, 99: 0, 100: 1, 199: 1, 200: 2, 300: 3, 1000: 3})
	v.ForgetBefore(199)
	at(map[int64]int{100: 1, 199: 1, 200: 2})
	v.ForgetBefore(200)
	at(map[int64]int{200: 2, 299: 2, 300: 3})
	v.ForgetBefore(1000)
	at(map[int64]int{300: 3})
	if len(v.Calibrators) != 1 {
		t.Errorf("%d calibrators kept, want the newest", len(v.Calibrators))
	}
}
