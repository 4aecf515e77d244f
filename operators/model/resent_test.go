package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestMessageHasTheFigures: the message of every alert has the figures of the fields beside it, also where the alert is
// published again because what inhibits it has changed: then both are of now.
func TestMessageHasTheFigures(t *testing.T) {
	t.Parallel()
	rows := episode(91, episode(92, episode(93, nil, 3000, 1), 2500, 2.5), 6000, 1)
	s := alarmSetup(testAlarm(stage.SignalRaw, stage.SignalCalibrated, stage.SignalAccuracy))
	s.model.Rules = append(defaultSetup().model.Rules, threshold(rule.Confidence, .3, .2))
	s.model.Hold, s.slices = 100*time.Second, []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	type key struct{ slice, rule string }
	type figures struct {
		state string
		rows  int64
		ece   float64
		text  string
	}
	last, again := map[key]figures{}, map[string]int{}
	for _, a := range w.alerts() {
		of := key{a.Slice, a.Rule}
		f := figures{a.State, a.Rows, a.ECE, a.Message}
		if before := last[of]; before.state == a.State && (before.rows != a.Rows || before.ece != a.ECE) {
			again[a.Kind]++
			if before.text == a.Message {
				t.Errorf("%s of %q has new figures and the message of before: %s", a.Rule, a.Slice, a.Message)
			}
		}
		last[of] = f
		if a.State == stage.Resolved && a.Kind == alarm.Kind {
			continue // says what ended it
		}
		want := []string{fmt.Sprint(a.Rows)}
		switch {
		case a.Kind == rule.Threshold:
			want = append(want, fmt.Sprintf("%.4f", a.Value))
		case a.Rule != "accuracy-fall":
			want = append(want, fmt.Sprintf("ECE %.4f", a.ECE))
		}
		for _, w := range want {
			if !strings.Contains(a.Message, w) {
				t.Errorf("%s of %q, %s: the message has not %q: %s", a.Rule, a.Slice, a.State, w, a.Message)
			}
		}
	}
	if again[alarm.Kind] == 0 || again[rule.Excess]+again[rule.Threshold] == 0 {
		t.Errorf("published again with other figures: %v, want alarms and rules", again)
	}
}
