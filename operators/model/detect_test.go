package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/operators/model/rule"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestRuleStates walks the rule over judgements of one pane each, at ends 10, 20, …: fire .05, clear .03.
func TestRuleStates(t *testing.T) {
	for _, c := range []struct {
		name              string
		forTime, clearFor time.Duration
		excess            string // by pane
		want              string // "end:state" of every change
	}{
		{"calm", 20, 20, ".01 .02 .05", ""},
		{"at the threshold is not over it", 0, 0, ".05", ""},
		{"fires at once without for", 0, 0, ".06 .06", "10:firing"},
		{"pending, then firing", 20, 0, ".06 .06 .06 .06", "10:pending 30:firing"},
		{"falls back before for", 20, 0, ".06 .06 .05 .06 .06", "10:pending 30:resolved 40:pending"},
		{"hysteresis: between clear and fire it stays", 0, 10, ".06 .04 .04 .04 .06", "10:firing"},
		{"resolves at once without clear_for", 0, 0, ".06 .02", "10:firing 20:resolved"},
		{"resolves after clear_for", 0, 20, ".06 .02 .02 .02 .02", "10:firing 40:resolved"},
		{"a rise restarts clear_for", 0, 20, ".06 .02 .02 .04 .02 .02 .02", "10:firing 70:resolved"},
		{"fires again", 0, 0, ".06 .02 .06", "10:firing 20:resolved 30:firing"},
		{"gaps between panes count as time", 30, 0, ".06 - - .06", "10:pending 40:firing"},
		{"significance: below the null's quantile it is not over", 0, 0, "n.06 n.06", ""},
		{"pending ends when it is not significant", 20, 0, ".06 n.06", "10:pending 20:resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &RuleSpec{rule.Config{Fire: .05, Clear: .03, For: c.forTime, ClearFor: c.clearFor}}
			var r stage.AlertState
			var got []string
			for i, x := range strings.Fields(c.excess) {
				if x == "-" {
					continue
				}
				end := int64(i+1) * 10
				j := judgement{rows: 100, iv: metric.Interval{NullHi: 1e-3}}
				if rest, ok := strings.CutPrefix(x, "n"); ok {
					x, j.iv.NullHi = rest, 1
				}
				if _, err := fmt.Sscan(x, &j.ece); err != nil {
					t.Fatal(err)
				}
				if state, changed := spec.move(&r, j, end-10, end); changed {
					got = append(got, fmt.Sprintf("%d:%s", end, state))
				}
				// The state survives its encoding at every pane.
				in := binenc.NewReader(r.Append(nil))
				var back stage.AlertState
				back.Restore(&in)
				if err := in.Close(); err != nil || !bytes.Equal(back.Append(nil), r.Append(nil)) || back.State != r.State {
					t.Fatalf("state %+v became %+v, %v", r, back, err)
				}
				r = back
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestAlarmComesWithTheShift shifts the confidences half way: no alarm before, one after, refit on fresh rows only,
// and the alarm resolves under the new calibrator.
func TestAlarmComesWithTheShift(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(31, batchtest.Options{N: 3000, MaxLag: 5 * second})
	shift := rows[len(rows)-1].TS + second
	rows = append(rows, batchtest.Rows(32, batchtest.Options{N: 4000, MaxLag: 5 * second, Sharpness: 3, Start: shift})...)
	s := defaultSetup()
	s.model.Refit.Period = 0
	w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
	var states []string
	for _, a := range decodeAll[record.Alert](t, w.outputs, pipeline.StreamAlerts) {
		states = append(states, a.State)
		if at := nanos(t, a.At); at <= shift {
			t.Errorf("alert %s at %s, before the shift at %s", a.State, a.At, pipeline.Format(shift))
		}
		if a.Value != a.ECE-a.ECENull || a.Rows < 400 || *a.ECELo > a.ECE || a.Since > a.At {
			t.Errorf("alert %+v does not add up", a)
		}
	}
	if got := strings.Join(states, " "); got != "pending firing resolved" {
		t.Errorf("states %q, want pending, firing, resolved", got)
	}
	cals := decodeAll[record.Calibrator](t, w.outputs, pipeline.StreamCalibrators)
	if len(cals) == 0 {
		t.Fatal("no calibrator was published")
	}
	for _, c := range cals {
		// The pane of the shift has rows from before it: the alarm's start is no later than the pane after.
		if c.Reason != "alarm" || nanos(t, c.Evidence.FitFrom) < shift-s.model.Pane || c.Evidence.FitRows+c.Evidence.TestRows < 300 {
			t.Errorf("calibrator %s of %d+%d rows from %s; want alarm, 300 or more rows, none from before the shift at %s",
				c.Reason, c.Evidence.FitRows, c.Evidence.TestRows, c.Evidence.FitFrom, pipeline.Format(shift))
		}
	}
	seen := map[pipeline.Stream]int{}
	for _, m := range w.model.Remembered() {
		seen[m.Stream]++
		if !json.Valid(m.Value) {
			t.Errorf("%s %s: no JSON", m.Stream, m.Key)
		}
	}
	if seen[pipeline.StreamSnapshots] != 4 || seen[pipeline.StreamAlerts] != 1 || seen[pipeline.StreamDecisions] != 1 {
		t.Errorf("remembered %v, want the latest of 4 windows, 1 rule and 1 model version", seen)
	}
}
