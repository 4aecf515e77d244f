package main

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestJudge: two calibrators by hand, the second worse than the first.
func TestJudge(t *testing.T) {
	s := &stream{k: 2, changes: []int{250}}
	for i := range 300 {
		s.z = append(s.z, 0, 4)
		s.labels = append(s.labels, int32(min(i%4, 1))) // three of four are right
	}
	better, err := calibrator.NewTemperature(4 / math.Log(3))
	if err != nil {
		t.Fatal(err)
	}
	changes := []change{{row: 100, cal: better}, {row: 200, cal: calibrator.Identity{}}}
	v := judge(s, changes, 80, byNLL)
	if len(v) != 2 || v[0].rows != 80 || v[1].rows != 80 || !v[0].helped() || !v[1].hurt() ||
		math.Abs(v[0].diff+v[1].diff) > 1e-12 {
		t.Errorf("verdicts %+v: want 80 rows each, the first helped, the second hurt as much", v)
	}
	if !s.changesIn(200, 280) || s.changesIn(100, 180) {
		t.Error("the change is at row 250")
	}
	if a, b := score(s, nil), score(s, []change{{row: 0, cal: better}}); !(b.Excess < a.Excess && b.NLL < a.NLL) {
		t.Errorf("as it is %+v, calibrated %+v: want the second to be better", a, b)
	}
}
