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

// TestProof: rows that the newest calibrator serves are asked only of an alarm on calibrated confidences whose error
// labels showed before that calibrator, and only while nobody is notified of it.
func TestProof(t *testing.T) {
	shows := func(yes bool) func() bool { return func() bool { return yes } }
	firing := stage.AlertState{State: stage.Firing, Since: 100, OverFrom: 400, InhibitedBy: "m/v//calibration-raw"}
	for _, c := range []struct {
		name     string
		from     int64 // of the calibrator in force; 0 = none
		rows     bool  // whether it has served any
		change   func(a *stage.Alert)
		persists func() bool
		want     proof
	}{
		{"no calibrator", 0, false, nil, shows(true), unasked},
		{"one that came before the error", 300, true, nil, shows(true), unasked},
		{"no rows", 500, false, nil, shows(true), awaited},
		{"rows without the error", 500, true, nil, shows(false), awaited},
		{"rows with it", 500, true, nil, shows(true), given},
		{"rows that cannot tell", 500, true, nil, nil, unasked},
		{"notified", 500, true, func(a *stage.Alert) { a.InhibitedBy = "" }, shows(true), unasked},
		{"on raw", 500, true, func(a *stage.Alert) { a.Signal = stage.SignalRaw }, shows(true), unasked},
		{"a rule", 500, true, func(a *stage.Alert) { a.Anytime = false }, shows(true), unasked},
	} {
		a := &stage.Alert{AlertState: firing, Anytime: true, Signal: stage.SignalCalibrated, Persists: c.persists}
		if c.change != nil {
			c.change(a)
		}
		k := &stage.Key{Version: &stage.Version{}, Alerts: []*stage.Alert{a}}
		if c.from > 0 {
			k.Version.Calibrators = []*stage.InForce{{Revision: 3, From: c.from}}
		}
		if c.rows {
			k.Since.Revision = 3
		}
		if got := proofOf(k, a); got != c.want {
			t.Errorf("%s: proof %d, want %d", c.name, got, c.want)
		}
	}
}
