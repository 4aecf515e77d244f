package model

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

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

// TestAlarmSwitchedOffIsPublished, by the task as it runs: what restoring decides is written with the next checkpoint.
func TestAlarmSwitchedOffIsPublished(t *testing.T) {
	s := alarmSetup(testAlarm())
	w := newWorld(t, s, worldtest.Stream(t, episode(83, nil, 2000, 2), 1, 50), 1).run(worldtest.AnyOrder)
	store, sink := &worldtest.FrailStore{}, &written{}
	begin := func(s setup) {
		err := pipeline.Run(t.Context(), pipeline.Runner{Group: "g", Store: store, Sink: sink,
			Interval: time.Hour, Log: quiet},
			func() (pipeline.Registered, error) {
				t := s.task()
				return pipeline.Registered{Task: t, Waiter: t}, nil
			},
			func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
				return pipeline.Opened{Source: &listedSource{w.Panes, int(max(next[pipeline.Panes], 0)), -1}}, nil
			})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	begin(s)
	n := len(sink.ms)
	s.model.Alarm = nil
	begin(s)
	if len(sink.ms) == n {
		t.Error("nothing was published after the restart without the alarm")
	}
	state := map[string]string{}
	for _, m := range sink.ms {
		if m.Stream == pipeline.StreamAlerts {
			var a record.Alert
			if err := json.Unmarshal(m.Value, &a); err != nil {
				t.Fatal(err)
			}
			state[string(m.Key)] = a.State
		}
	}
	for k, v := range state {
		if v == stage.Firing {
			t.Errorf("%s still fires for ever", k)
		}
	}
}
