package model

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// comparing returns rules of all kinds that compare, against a reference of the given mode.
func comparing(mode string) []rule.Config {
	ref := alarm.Pinned
	if mode == alarm.Rolling {
		ref = alarm.Rolling
	}
	var out []rule.Config
	for kind, measures := range map[string][]string{
		rule.Reference: {rule.ECE, rule.SmECE, rule.Accuracy, rule.NLL, rule.Curve},
		rule.Distance:  {rule.KS, rule.Wasserstein, rule.PSI, rule.JS},
		rule.Estimate:  {rule.Accuracy, rule.ECE, rule.Miss},
	} {
		for i, m := range measures {
			out = append(out, rule.Config{Name: kind + "-" + m, Kind: kind, Measure: m,
				Signal: []string{stage.SignalRaw,
					stage.SignalCalibrated}[i%2], Score: stage.ScoreNames[i%3], Severity: "warning",
				Rows: 800, MinRows: 400, Fire: .04, Clear: .03, For: 10 * time.Second, Reference: ref,
				ReferenceRows: 1000, Alpha: 1e-4, Slices: m == rule.KS || m == rule.Curve})
		}
	}
	slices.SortFunc(out, func(a, b rule.Config) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// TestRulesThatCompare: each change makes certain rules fire, and none fires before it.
func TestRulesThatCompare(t *testing.T) {
	t.Parallel()
	// The model becomes overconfident; or less confident with equal accuracy; or less accurate with equal confidence.
	for _, c := range []struct {
		name  string
		after func([]batchtest.Row)
		want  []string
	}{
		{"overconfident", func(rows []batchtest.Row) {
			for i := range rows {
				rows[i].Scores = scaled(rows[i].Scores, 3)
			}
		}, []string{"distance-js", "distance-ks", "distance-psi", "distance-wasserstein", "estimate-miss",
			"reference-curve", "reference-ece", "reference-nll", "reference-smece"}},
		{"unsure", func(rows []batchtest.Row) {
			for i := range rows {
				rows[i].Scores = scaled(rows[i].Scores, .5)
			}
		}, []string{"distance-js", "distance-ks", "distance-psi", "distance-wasserstein", "estimate-accuracy",
			"estimate-miss", "reference-curve", "reference-ece", "reference-nll", "reference-smece"}},
		{"wrong", func(rows []batchtest.Row) {
			for i := range rows {
				if i%5 == 0 {
					rows[i].Label = (rows[i].Label + 1) % 4
				}
			}
		}, []string{"estimate-miss", "reference-accuracy", "reference-curve", "reference-ece", "reference-nll",
			"reference-smece"}},
	} {
		for _, mode := range []string{alarm.Pinned, alarm.Rolling} {
			t.Run(c.name+" "+mode, func(t *testing.T) {
				if c.name != "unsure" || mode != alarm.Rolling {
					testsize.Slow(t)
				}
				t.Parallel()
				rows := episode(111, episode(112, nil, 3500, 1), 1500, 1)
				c.after(rows[3500:])
				s := alarmSetup(nil)
				s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 1000, Alpha: .001}
				s.model.Rules = comparing(mode)
				for i := range s.model.Rules {
					s.model.Rules[i].Signal = stage.SignalRaw
				}
				w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
				var fired []string
				for _, a := range w.alerts() {
					// Intervals are for 95 % and for one evaluation, so noise may make a rule pending.
					if a.State == stage.Firing && a.At.UnixNano() <= rows[3500].TS {
						t.Errorf("%s fires at %s, before the change", a.Rule, a.At)
					}
					if a.State == stage.Firing && !slices.Contains(fired, a.Rule) {
						fired = append(fired, a.Rule)
						if a.Value <= .04 || a.Message == "" || a.ValueLo != nil &&
							(*a.ValueLo > a.Value || *a.ValueHi < a.Value) {
							t.Errorf("alert %+v does not add up", a)
						}
					}
				}
				slices.Sort(fired)
				if fmt.Sprint(fired) != fmt.Sprint(c.want) {
					t.Errorf("%v fire, want %v", fired, c.want)
				}
			})
		}
	}
}

// TestRulesOfMaturedRows: labels of wrong rows that come first make rules fire on calibrated rows. With alarm.matured
// they do not, and each fires after a change.
func TestRulesOfMaturedRows(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows, from := wrongFirst(t)
	of := func(kind, measure string, fire float64) rule.Config {
		return rule.Config{Name: measure, Kind: kind, Measure: measure, Signal: stage.SignalRaw, Severity: "warning",
			Rows: 2000, MinRows: 500, Fire: fire, Clear: fire / 2, Reference: alarm.Pinned, ReferenceRows: 1000}
	}
	rules := []rule.Config{of(rule.Excess, rule.ECE, .06), of(rule.Threshold, rule.CWECE, .07),
		of(rule.Reference, rule.NLL, .1)}
	fired := func(matured time.Duration) (before, after map[string]bool) {
		s := alarmSetup(nil)
		s.model.Rules, s.model.Matured = rules, int64(matured)
		s.join.Wait, s.model.FinalAfter = 300*time.Second, 310*second
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
		before, after = map[string]bool{}, map[string]bool{}
		for _, a := range w.alerts() {
			switch {
			case a.State != stage.Firing:
			case a.At.UnixNano() < rows[from].TS:
				before[a.Rule] = true
			default:
				after[a.Rule] = true
			}
		}
		return before, after
	}
	if before, _ := fired(0); len(before) < 2 {
		t.Errorf("as labels come, %v fire before the change: the test has no fault", before)
	}
	if before, after := fired(120 * time.Second); len(before) > 0 || len(after) < len(rules) {
		t.Errorf("matured, %v fire before the change and %v after it, want none and all", before, after)
	}
}
