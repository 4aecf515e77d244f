package model

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestAlarmSwitchedOffWhileItFires: the last alert of a removed alarm is resolved once at the restart, with the same
// record at every restart. An alarm that is still configured, or does not fire, publishes nothing.
func TestAlarmSwitchedOffWhileItFires(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		now  *alarm.Config
		off  []string
	}{
		{"off", nil, []string{"calibration-calibrated", "calibration-raw"}},
		{"one signal", testAlarm(stage.SignalCalibrated), []string{"calibration-raw"}},
		{"on", testAlarm(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := alarmSetup(testAlarm())
			w := newWorld(t, s, worldtest.Stream(t, episode(83, nil, 2000, 2), 1, 50), 1).run(worldtest.AnyOrder)
			last := map[string]record.Alert{}
			for _, a := range w.alerts() {
				last[a.Rule] = a
			}
			if len(last) != 2 || last["calibration-raw"].State != stage.Firing {
				t.Fatalf("alerts %+v, want two that fire", last)
			}
			s.model.Alarm = c.now
			first := restart(w, s, w.SavedModel)
			again := restart(w, s, w.SavedModel)
			outputs := first.Outputs()
			worldtest.CompareOutputs(t, worldtest.Firsts(again.Outputs()), worldtest.Firsts(outputs))
			alerts := worldtest.DecodeAll[record.Alert](t, outputs, pipeline.StreamAlerts)
			if len(alerts) != len(c.off) || len(outputs) != len(c.off) || len(c.off) > 0 && !first.Decided().Dirty {
				t.Fatalf("%d alerts, want %v", len(alerts), c.off)
			}
			for i, a := range alerts {
				was, m := last[c.off[i]], first.models["m"]
				if a.Rule != c.off[i] || a.State != stage.Resolved || a.Since != was.Since ||
					a.At.UnixNano() != m.next*s.model.Pane || a.At.UnixNano() < was.At.UnixNano() ||
					!strings.HasPrefix(a.Message, "switched off: ") || a.Evidence != nil ||
					string(outputs[i].Key) != "m/v1//"+a.Rule || a.InhibitedBy != was.InhibitedBy {
					t.Errorf("alert %+v (key %s) after %+v", a, outputs[i].Key, was)
				}
			}
			saved, err := pipeline.EncodeCheckpoint(first.Sections())
			w.Must(err)
			if more := restart(w, s, saved.Data).Outputs(); len(more) != 0 {
				t.Errorf("%d outputs at the next restart, want none", len(more))
			}
		})
	}
}

func restart(w *world, s setup, checkpoint []byte) *Task {
	w.T.Helper()
	task := s.task()
	w.Must(pipeline.RestoreCheckpoint(checkpoint, task.Sections(), nil))
	return task
}
