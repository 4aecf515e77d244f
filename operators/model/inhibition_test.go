package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestInhibition sets, pane by pane, the states of the alarms and of two rules, for the whole version and for one
// slice, and checks which alert inhibits which. w is the whole version and s the slice; r, c and a are the alarms on
// raw, calibrated and accuracy; 1 and 2 are rules of severity warning and info.
func TestInhibition(t *testing.T) {
	type pane struct{ firing, calibrator, want string } // want: "of<by" for each firing alert
	for _, c := range []struct {
		name  string
		panes []pane
	}{
		{"alone", []pane{{"w1", "", "w1<"}, {"s2", "", "s2<"}}},
		{"raw goes before calibrated, both before rules", []pane{{"wr wc w1 w2", "", "wr< wc<wr w1<wr w2<wr"}}},
		{"the whole goes before its slices", []pane{{"w1 s2 s1", "", "w1< s2<w1 s1<w1"}}},
		{"but not before what is more severe", []pane{{"w2 s1", "", "w2< s1<"}, {"w1 w2 sr", "", "w1< w2<w1 sr<w1"}}},
		{"a fall of accuracy follows", []pane{{"wr wa", "", "wr< wa<wr"}, {"w1 wa", "", "w1< wa<w1"}}},
		{"but not from what is less severe, and stands for no other kind", []pane{{"wa w2 s2", "", "wa< w2< s2<w2"},
			{"wa sa s1", "", "wa< sa<wa s1<"}}},
		{"a slice has a root of its own", []pane{{"sr s1", "", "sr< s1<sr"}}},
		{"a calibrator answers raw", []pane{{"wr wc", "", "wr< wc<wr"},
			{"wr wc w1", "yes", "wr<calibrator wc<wr(held) w1<wc"}}},
		{"held for two panes after its inhibitor", []pane{{"wr w1", "", "wr< w1<wr"}, {"w1", "", "w1<wr(held)"},
			{"w1", "", "w1<wr(held)"}, {"w1", "", "w1<"}}},
		{"the inhibitor comes back", []pane{{"wr w1", "", "w1<wr wr<"}, {"w1", "", "w1<wr(held)"},
			{"wr w1", "", "w1<wr wr<"}, {"w1", "", "w1<wr(held)"}, {"w1", "", "w1<wr(held)"}, {"w1", "", "w1<"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := alarmSetup(testAlarm(stage.SignalRaw, stage.SignalCalibrated, stage.SignalAccuracy))
			s.model.Rules = []rule.Config{{Name: "one", Severity: "warning"}, {Name: "two", Severity: "info"}}
			s.model.Alarm.Severity, s.model.Hold = "warning", 20*time.Second
			task := s.task()
			m := task.newModel("m")
			v, err := task.versionOf(m, "v", 3)
			if err != nil {
				t.Fatal(err)
			}
			keys := map[byte]*keyState{'w': v.key("", &task.cfg), 's': v.key("a=b", &task.cfg)}
			of := func(name string) *stage.Alert { // alarms, then rules
				return keys[name[0]].Alerts[strings.IndexByte("rca12", name[1])]
			}
			names := strings.NewReplacer("m/v//", "w", "m/v/a=b/", "s", "calibration-raw", "r",
				"calibration-calibrated", "c", "accuracy-fall", "a", "one", "1", "two", "2", "calibrator 1",
				"calibrator")
			for i, p := range c.panes {
				end := int64(i+1) * 10 * second
				if p.calibrator != "" && v.Newest() == nil {
					v.Calibrators = []*stage.InForce{{Revision: 1, From: end, Cal: calibrator.Temperature{}}}
				}
				for where := range keys {
					for _, what := range "rca12" {
						name := string([]byte{where, byte(what)})
						r, fires := of(name), strings.Contains(" "+p.firing+" ", " "+name+" ")
						r.Change = nil
						switch {
						case fires && r.State != stage.Firing:
							r.AlertState = stage.AlertState{State: stage.Firing, Since: end}
							r.Change = &record.Alert{State: stage.Firing}
						case !fires && r.State == stage.Firing:
							r.End()
							r.Change = &record.Alert{State: stage.Resolved}
						}
					}
				}
				task.alert.Settle([]*stage.Key{&keys['s'].Key, &keys['w'].Key}, end)
				var got []string
				for _, name := range strings.Fields(p.want) {
					name, _, _ = strings.Cut(name, "<")
					r := of(name)
					held := ""
					if r.HoldFrom != 0 {
						held = "(held)"
					}
					got = append(got, name+"<"+names.Replace(r.InhibitedBy)+held)
				}
				if g := strings.Join(got, " "); g != p.want {
					t.Errorf("pane %d: %s, want %s", i, g, p.want)
				}
			}
		})
	}
}

// TestResolutionReachesNotifiedReceivers: a resolution is inhibited only if the alert was inhibited all the time.
func TestResolutionReachesNotifiedReceivers(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(91, episode(92, episode(93, nil, 3000, 1), 2500, 2.5), 9000, 1)
	s := alarmSetup(testAlarm())
	s.model.Rules, s.model.Hold = defaultSetup().model.Rules, 1000*time.Second
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	notified := map[string]bool{}
	roots := 0
	for _, m := range w.Outputs {
		if m.Stream != pipeline.StreamAlerts {
			continue
		}
		a := worldtest.DecodeAll[record.Alert](t, []pipeline.Message{m}, pipeline.StreamAlerts)[0]
		key := string(m.Key)
		switch {
		case a.State == stage.Firing && a.InhibitedBy == "":
			notified[key] = true
			roots++
		case a.State == stage.Resolved && notified[key] != (a.InhibitedBy == ""):
			t.Errorf("%s resolved with inhibited_by %q, was notified: %v", key, a.InhibitedBy, notified[key])
		case a.State == stage.Resolved:
			delete(notified, key)
		}
	}
	if roots == 0 || roots > 2 {
		t.Errorf("%d alerts fire uninhibited, want one, at most one more before the root came", roots)
	}
	if len(notified) != 0 {
		t.Errorf("still firing for notified receivers: %v", fmt.Sprint(notified))
	}
}
