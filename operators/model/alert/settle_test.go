package alert

import (
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestAnswered: a calibrator that came before labels showed an error does not answer its alarm, however early the
// error began.
func TestAnswered(t *testing.T) {
	raw := &stage.Alert{Anytime: true, Signal: stage.SignalRaw,
		AlertState: stage.AlertState{State: stage.Firing, Since: 100, OverFrom: 400}}
	calibrated := &stage.Alert{Anytime: true, Signal: stage.SignalCalibrated}
	for _, c := range []struct {
		from   int64 // of the calibrator in force; 0 = none
		alerts []*stage.Alert
		want   bool
	}{
		{0, []*stage.Alert{raw}, false},
		{300, []*stage.Alert{raw}, false},
		{500, []*stage.Alert{raw}, true},
		{300, []*stage.Alert{raw, calibrated}, true}, // the other alarm watches what it gives
	} {
		k := &stage.Key{Version: &stage.Version{}, Alerts: c.alerts}
		if c.from > 0 {
			k.Version.Calibrators = []*stage.InForce{{From: c.from}}
		}
		if got := answered(k, raw); got != c.want {
			t.Errorf("a calibrator from %d on, %d alarms: answered %v, want %v", c.from, len(c.alerts), got, c.want)
		}
	}
}
