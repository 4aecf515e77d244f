package model

import (
	"bytes"
	"testing"
	"time"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/internal/binenc"
)

// FuzzDetectState: foreign bytes are an error, and what is read encodes to the same bytes.
func FuzzDetectState(f *testing.F) {
	cfg := alarmSetup(testAlarm()).model
	cfg.Rules = defaultSetup().model.Rules
	cfg.Alarm.Reference, cfg.Alarm.Matured = refRolling, 20*time.Second
	fresh := func() *keyState {
		k := &keyState{specs: cfg.Rules, rules: make([]stage.AlertState, len(cfg.Rules)), looks: make([]*look, len(cfg.Rules))}
		k.addAlarms(cfg.Alarm)
		return k
	}
	k := fresh()
	k.rules[0] = stage.AlertState{State: stage.Firing, Since: 5, Last: []byte("{}"), Notified: true}
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
