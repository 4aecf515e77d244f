package main

import (
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
)

// TestDefaultsAreTheProducts: what is measured is what a configuration without a word about refits gives, but for the
// period, which is a day of the stream's rows.
func TestDefaultsAreTheProducts(t *testing.T) {
	f, s := config.Default().Refit, refitSpec
	if f.Method != s.Method || f.OnAlarm != s.OnAlarm || f.FreshRows != s.FreshRows || f.MinRows != s.MinRows || f.MaxRows != s.MaxRows || f.TestShare != s.TestShare ||
		f.Delay != s.Delay || f.Alpha != s.Alpha || f.ValidationRows != s.ValidationRows || int64(f.ValidationFor) != s.ValidationFor || f.MinNLLGain != s.MinNLLGain ||
		f.MaxECERise != s.MaxECERise || f.MaxAccuracyDrop != s.MaxAccDr || int64(f.ShadowFor) != s.ShadowFor || f.CanaryShare != s.CanaryShare ||
		1/float64(f.RollbackPanes) != s.RollbackAlpha || int64(f.Cooldown) != s.Cooldown {
		t.Errorf("measured %+v, the product has %+v", s, f)
	}
	a, m := config.Default().Alarm, taskConfig().Alarm
	if !slices.Equal(a.Signals, m.Signals) || a.EpsilonECE != m.EpsilonECE || a.EpsilonBin != m.EpsilonBin || a.EpsilonAccuracy != m.EpsilonAccuracy || a.Bins != m.Bins ||
		float64(pane)/float64(a.FalseAlarmEvery) != m.Alpha || a.ReferenceRows != m.ReferenceRows || a.Slack != m.Slack || a.ClearRows != m.ClearRows ||
		int64(a.ClearFor) != m.ClearFor || a.QuietRows != m.QuietRows {
		t.Errorf("measured with the alarm %+v, the product has %+v", m, a)
	}
}

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
	v := judge(s, changes, 80)
	if len(v) != 2 || v[0].rows != 80 || v[1].rows != 80 || !v[0].helped() || !v[1].hurt() || math.Abs(v[0].diff+v[1].diff) > 1e-12 {
		t.Errorf("verdicts %+v: want 80 rows each, the first helped, the second hurt as much", v)
	}
	if !s.changesIn(200, 280) || s.changesIn(100, 180) {
		t.Error("the change is at row 250")
	}
	if a, b := score(s, nil), score(s, []change{{row: 0, cal: better}}); !(b.Excess < a.Excess && b.NLL < a.NLL) {
		t.Errorf("as it is %+v, calibrated %+v: want the second to be better", a, b)
	}
}
