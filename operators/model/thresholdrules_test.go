package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

func threshold(measure string, fire, resolve float64) rule.Config {
	return rule.Config{Name: measure, Kind: rule.Threshold, Measure: measure, Signal: stage.SignalRaw,
		Severity: "warning", Rows: 800, MinRows: 400, Fire: fire, Clear: resolve,
		For: 10 * time.Second, Side: map[bool]string{true: "below",
			false: "above"}[fire < resolve], Age: 20 * time.Second}
}

func thresholds() []rule.Config {
	return []rule.Config{threshold(rule.Accuracy, .62, .66), threshold(rule.NLL, .9, .85),
		threshold(rule.ECE, .08, .05), threshold(rule.SmECE, .08, .06), threshold(rule.CWECE, .05, .04),
		threshold(rule.Confidence, .85, .8), threshold(rule.Coverage, .7, .8)}
}

// changing returns 2,500 rows of a calibrated model, 1,500 changed ones, and 2,500 like the first.
func changing(change func(*batchtest.Row, int)) []batchtest.Row {
	return changingAt(2500, 4000, change)
}

func changingAt(from, to int, change func(*batchtest.Row, int)) []batchtest.Row {
	rows := episode(123, episode(122, episode(121, nil, from, 1), to-from, 1), from, 1)
	for i := from; i < to; i++ {
		change(&rows[i], i)
	}
	return rows
}

// TestThresholdRules: each change makes certain rules fire. None fires before it, and all are resolved after it.
func TestThresholdRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*batchtest.Row, int)
		want   []string
	}{
		{"overconfident", func(r *batchtest.Row, _ int) { r.Scores = scaled(r.Scores, 3) },
			[]string{"confidence", "cwece", "ece", "nll", "smece"}},
		{"wrong", func(r *batchtest.Row, i int) {
			if i%4 == 0 {
				r.Label = (r.Label + 1) % 4
			}
		}, []string{"accuracy", "cwece", "ece", "nll", "smece"}},
		{"unlabelled", func(r *batchtest.Row, i int) {
			if i%2 == 0 {
				r.Label = -1
			}
		}, []string{"coverage"}},
		{"late", func(r *batchtest.Row, i int) {
			if i%2 == 0 {
				r.LabelTS = r.TS + 40*second // labels come, but later than Age
			}
		}, []string{"coverage"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "overconfident" {
				testsize.Slow(t)
			}
			t.Parallel()
			rows, s := changing(c.change), alarmSetup(nil)
			s.model.Rules = thresholds()
			w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
			var fired []string
			last := map[string]string{}
			for _, a := range w.alerts() {
				again := last[a.Rule] == a.State // its inhibitor changed; the value may be on its way back
				last[a.Rule] = a.State
				if a.State != stage.Resolved && a.At.UnixNano() <= rows[2500].TS {
					t.Errorf("%s is %s at %s, before the change", a.Rule, a.State, a.At)
				}
				if a.State == stage.Firing {
					fired = append(fired, a.Rule)
					if !again {
						checkThresholdAlert(t, &a)
					}
				}
			}
			slices.Sort(fired)
			if fired = slices.Compact(fired); fmt.Sprint(fired) != fmt.Sprint(c.want) {
				t.Errorf("%v fire, want %v", fired, c.want)
			}
			for rule, state := range last {
				if state != stage.Resolved {
					t.Errorf("%s is %s at the end", rule, state)
				}
			}
		})
	}
}

func checkThresholdAlert(t *testing.T, a *record.Alert) {
	t.Helper()
	below := a.Rule == rule.Accuracy || a.Rule == rule.Coverage
	side := "fires above"
	if below {
		side = "fires below"
	}
	if a.Kind != rule.Threshold || below != (a.Value < a.Threshold) || a.ValueLo == nil || *a.ValueLo > a.Value ||
		*a.ValueHi < a.Value || !strings.Contains(a.Message, side) {
		t.Errorf("alert %+v does not add up", a)
	}
}

// TestThresholdOfInterval: with Interval, a rule does not fire while its value is beyond the bound by less than noise.
// It fires once the whole interval is beyond.
func TestThresholdOfInterval(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := changing(func(r *batchtest.Row, i int) {
		if i%4 == 0 {
			r.Label = (r.Label + 1) % 4
		}
	})
	s := alarmSetup(nil)
	s.model.Rules = thresholds()[:1]
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	var at *record.Alert
	for _, a := range w.alerts() {
		if a.State == stage.Firing {
			at = &a
			break
		}
	}
	if at == nil {
		t.Fatal("accuracy fell, and nothing fires")
	}
	near := (at.Value + *at.ValueHi) / 2 // the value is below it, but not the whole interval
	first := map[bool]record.Time{}
	for _, sure := range []bool{false, true} {
		s.model.Rules = []rule.Config{threshold(rule.Accuracy, near, 1)}
		s.model.Rules[0].Interval = sure
		for _, a := range newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder).alerts() {
			if a.State == stage.Firing && first[sure].IsZero() {
				first[sure] = a.At
				if sure && *a.ValueHi >= near {
					t.Errorf("fires at %v with an interval up to %v, bound %v", a.Value, *a.ValueHi, near)
				}
			}
		}
	}
	if first[false].IsZero() || !first[true].After(first[false]) {
		t.Errorf("bound %v: fires at %s by its value, at %s by its interval; want the second, later", near,
			first[false], first[true])
	}
}

// TestThresholdRulesSurvive: a task that is restored again and again ends like one that runs through, and so does one
// with other shards and crashes.
func TestThresholdRulesSurvive(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := changingAt(1200, 2000, func(r *batchtest.Row, i int) {
		r.Scores = scaled(r.Scores, 3)
		if i%3 == 0 {
			r.Label = -1
		}
	})
	s := alarmSetup(nil)
	s.slices, s.model.Rules = []string{"region"}, thresholds()
	for i := range s.model.Rules {
		s.model.Rules[i].Slices, s.model.Rules[i].MinRows = true, 100
	}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 25), 1).run(worldtest.AnyOrder)
	if len(w.alerts()) < 8 {
		t.Fatalf("%d alerts to compare", len(w.alerts()))
	}
	newWorld(t, s, worldtest.Stream(t, rows, 3, 40), 5).run(worldtest.AnyOrder).compare(w)
	w.compareRestarts(t, w.restartsAfter(5))
}
