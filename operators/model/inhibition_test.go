package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestInhibition sets, pane by pane, the states of the alarms and of two rules, for the whole version and for one
// slice, and checks which alert inhibits which. w is the whole version and s the slice; r, c and a are the alarms on
// raw, calibrated and accuracy; 1 and 2 are rules of severity warning and info.
func TestInhibition(t *testing.T) {
	// calibrator: "" if none is in force, "rows" if it has served some, "rows w s" if they show the error; want:
	// "of<by" for each firing alert.
	type pane struct{ firing, calibrator, want string }
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
			{"wr wc w1", "yes", "wr<calibrator wc<calibrator w1<wc"}}},
		{"calibrated waits for rows that the calibrator serves", []pane{{"wr wc sc", "", "wr< wc<wr sc<wr"},
			{"wr wc sc", "yes", "wc<calibrator sc<wc"}, {"wr sc", "", "sc<calibrator"}, {"sc", "", "sc<calibrator"},
			{"sc", "", "sc<calibrator"}, {"sc", "", "sc<calibrator"}, {"wc sc", "", "wc< sc<wc"}}},
		{"a slice that the calibrator does not mend", []pane{{"wr wc sc", "", "wr< wc<wr sc<wr"},
			{"wr wc sc", "rows", "wc<calibrator sc<wc"}, {"wr wc sc", "rows s", "wc<calibrator sc<"},
			{"sc", "rows", "sc<"}}},
		{"a slice of a whole that the calibrator mends", []pane{{"wc sc", "", "wc< sc<wc"},
			{"wc sc", "rows s", "wc< sc<wc"}, {"sc", "rows s", "sc<"}}},
		{"a slice of a whole that heals by itself", []pane{{"wc sc", "", "wc< sc<wc"},
			{"wc sc", "rows w s", "wc< sc<wc"}, {"sc", "rows w s", "sc<wc(held)"}, {"sc", "rows w s", "sc<wc(held)"},
			{"sc", "rows w s", "sc<"}}},
		{"calibrated does not wait if its error came later", []pane{{"w1", "yes", "w1<"}, {"w1 sc", "", "w1< sc<w1"},
			{"sc", "", "sc<w1(held)"}, {"sc", "", "sc<w1(held)"}, {"sc", "", "sc<"}}},
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
				for where, k := range keys {
					shows := strings.Fields(p.calibrator)
					if slices.Contains(shows, "rows") {
						k.Since.Revision = 1
					}
					k.Alerts[1].Persists = func() bool { return slices.Contains(shows, string(where)) }
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
				if err := task.alert.Settle([]*stage.Key{&keys['s'].Key, &keys['w'].Key}, end); err != nil {
					t.Fatal(err)
				}
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

// TestFiguresOfAlerts: the mean confidence and the accuracy of an alert are those that its message names, in records
// that are published again too.
func TestFiguresOfAlerts(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(91, episode(92, episode(93, nil, 3000, 1), 2500, 2.5), 9000, 1)
	s := alarmSetup(testAlarm())
	s.model.Rules, s.model.Hold = defaultSetup().model.Rules, 100*time.Second
	s.slices = []string{"region"}
	inWords := regexp.MustCompile(`mean confidence ([0-9.]+), accuracy ([0-9.]+), ECE ([0-9.]+)`)
	named, repeats, before := 0, 0, map[string]string{}
	for _, a := range newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder).alerts() {
		if a.MeanConfidence == nil || a.Accuracy == nil {
			t.Fatalf("%s of %q has no figures", a.Rule, a.Slice)
		}
		key := a.Slice + "/" + a.Rule
		if before[key] == a.State {
			repeats++
		}
		before[key] = a.State
		if m := inWords.FindStringSubmatch(a.Message); m != nil {
			named++
			if got := []string{fmt.Sprintf("%.3f", *a.MeanConfidence), fmt.Sprintf("%.3f", *a.Accuracy),
				fmt.Sprintf("%.4f", a.ECE)}; !slices.Equal(got, m[1:]) {
				t.Errorf("%s %s has %v, its message: %s", key, a.State, got, a.Message)
			}
		}
	}
	if named < 2 || repeats == 0 {
		t.Errorf("%d messages name figures, %d records came again; the test proves nothing", named, repeats)
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

// TestSliceUnderCalibratorOfWhole: all confidences are off, those of one slice most. A calibrator mends the whole and
// not that slice. The slice's alert on calibrated confidences waits for rows of the slice that the calibrator serves,
// however long, and is notified as soon as they show the error.
func TestSliceUnderCalibratorOfWhole(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		name  string
		slice float32 // by how much its logits are too large then; 0 = it has no rows
		rows  int     // of all slices: at 12,000, twice as long as an alert is held
		want  string
	}{
		{"persists", 3, 12_000, "notified"},
		{"gone", 1.3, 20_000, "resolved"},
		{"no rows", 0, 12_000, "inhibited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := sliceUnderCalibrator(t, c.slice, c.rows)
			cals := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
			if len(cals) != 1 {
				t.Fatalf("%d calibrators, want the one ordered", len(cals))
			}
			from, of := cals[0].EffectiveFrom.UnixNano(), []record.Alert(nil)
			notified, before := int64(0), false
			for _, a := range w.alerts() {
				if a.Slice != "region=r0" || a.Rule != "calibration-calibrated" {
					continue
				}
				at := a.At.UnixNano()
				before = before || at < from && a.InhibitedBy == "m/v1//calibration-raw"
				if of = append(of, a); at > from && a.State == stage.Firing && a.InhibitedBy == "" && notified == 0 {
					notified = at - from
				}
			}
			if !before {
				t.Fatalf("alerts %+v: not inhibited by the whole version before the calibrator", of)
			}
			got, last := "notified", of[len(of)-1]
			switch {
			case last.State == stage.Resolved && notified == 0:
				got = "resolved"
			case last.InhibitedBy == "calibrator 1" && notified == 0:
				got = "inhibited"
			}
			if got != c.want || got == "notified" && notified > int64(w.setup.model.Hold)/2 {
				t.Errorf("%s, %d s after the calibrator took force; want %s, at once; alerts %+v", got,
					notified/second, c.want, of)
			}
		})
	}
}

// sliceUnderCalibrator runs a stream in which logits become too large by 1.3, those of one slice by 3. Then a
// temperature of 1.3 is ordered, and for so many rows the slice's logits are too large by a factor, 0 = there are none.
func sliceUnderCalibrator(t *testing.T, factor float32, after int) *world {
	const good, bad = 2000, 4000
	rows := batchtest.Rows(97, batchtest.Options{N: good + bad + after, Step: second / 20, MaxLag: 5 * second,
		Regions: 12})
	for i := range rows {
		r, by := &rows[i], float32(1.3)
		switch {
		case i < good:
			by = 1
		case r.Region != "r0":
		case i < good+bad:
			by = 3
		default:
			by = factor
		}
		for k := range r.Scores {
			r.Scores[k] *= by
		}
	}
	if factor == 0 {
		rows = slices.Concat(rows[:good+bad], slices.DeleteFunc(rows[good+bad:],
			func(r batchtest.Row) bool { return r.Region == "r0" }))
	}
	s := alarmSetup(testAlarm())
	s.model.Hold, s.model.Windows, s.slices = 300*time.Second, s.model.Windows[:1], []string{"region"}
	log := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).Log(worldtest.InTurn)
	w := newWorld(t, s, nil, 1)
	const ordered = good + bad + 800 // the panes of labels lag by so many rows
	w.Panes = withOrders(log, map[float64]*pipeline.Order{ordered / float64(good+bad+after): {ID: [16]byte{1},
		Action: pipeline.ActionPublish, Model: "m", Version: "v1", Calibrator: batchtest.Temperature(t, 1.3),
		By: "ann", Why: "test"}})
	w.Finish()
	w.compareRestarts(t, func(i int, _ *Task) bool { return i%97 == 0 })
	return w
}
