package model

import (
	"bytes"
	"os"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// TestModelCheckpointWithoutAlarms goes on from a model task's checkpoint of a build that had rules only
// (testdata/model-checkpoint-v2, taken after 10 messages, while its rule fired): with rules only all goes on as if there had been one
// build, and with the alarm that begins without rows.
func TestModelCheckpointWithoutAlarms(t *testing.T) {
	data, err := os.ReadFile("testdata/model-checkpoint-v2")
	if err != nil {
		t.Fatal(err)
	}
	rows := batchtest.Rows(61, batchtest.Options{N: 700, MaxLag: 10 * second, Sharpness: 2.5})
	for _, alarm := range []*AlarmSpec{nil, testAlarm(signalRaw)} {
		s := defaultSetup()
		s.model.SampleRows, s.model.Refit.Method, s.model.Refit.Online = 200, "none", false // calibrators have changed since
		w := newWorld(t, s, stream(t, rows, 1, 10), 1).run(inTurn)
		s.model.Alarm = alarm
		task := s.task()
		w.must(pipeline.RestoreCheckpoint(data, task.Sections(), nil))
		k := task.models["m"].versions["v1"].keys[""]
		if r := k.rules[0]; r.state != firing || !r.told || r.since == 0 || len(k.recent.panes) == 0 {
			t.Fatalf("rule %+v, want it to fire", r)
		}
		if alarm != nil && (len(k.alarms) != 1 || k.alarms[0].tests.Headline.Panes() != 0) {
			t.Fatalf("alarms %+v, want one without rows", k.alarms)
		}
		for _, r := range w.panes {
			w.must(task.Take(t.Context(), r)) // those before the checkpoint are passed over
		}
		want, got := map[string]string{}, map[string]string{}
		for to, ms := range map[*map[string]string][]pipeline.Message{&want: w.outputs, &got: task.Outputs()} {
			for _, m := range ms {
				(*to)[string(m.Stream)+string(m.Key)+pipeline.Format(m.Time)] = string(m.Value)
			}
		}
		snapshots := 0
		for key, value := range got {
			if alarm == nil && want[key] != value {
				t.Errorf("%s is\n%s, want\n%s", key, value, want[key])
			}
			snapshots++
		}
		if snapshots == 0 {
			t.Error("nothing came after the checkpoint")
		}
	}
}

// FuzzDetectState: foreign bytes are an error, and what is read encodes to the same bytes.
func FuzzDetectState(f *testing.F) {
	cfg := alarmSetup(testAlarm()).model
	cfg.Rules = defaultSetup().model.Rules
	cfg.Alarm.Reference, cfg.Alarm.Matured = refRolling, 20*second
	fresh := func() *keyState {
		k := &keyState{specs: cfg.Rules, rules: make([]ruleState, len(cfg.Rules)), looks: make([]*look, len(cfg.Rules))}
		k.addAlarms(cfg.Alarm)
		return k
	}
	k := fresh()
	k.rules[0] = ruleState{state: firing, since: 5, last: []byte("{}"), told: true}
	k.alarms[0].since.add(paneOf(15, 3))
	k.alarms[0].curve.next = paneOf(15, 4)
	k.alarms[0].waiting.add(cfg.Alarm, cfg.Pane, 7, 7, paneOf(15, 2))
	seed, err := k.appendDetect(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		k, r := fresh(), binenc.NewReader(data)
		if k.restoreDetect(&r, &cfg) != nil {
			return
		}
		again, err := k.appendDetect(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, r2 := fresh(), binenc.NewReader(again)
		if err := back.restoreDetect(&r2, &cfg); err != nil {
			t.Fatalf("%v: its own encoding", err)
		}
		if third, err := back.appendDetect(nil); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%x is read as %x, %v", again, third, err)
		}
	})
}
