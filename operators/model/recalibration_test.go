package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestAlarmComesWithTheShift shifts the confidences half way. There is no alarm before, one after, and a refit on fresh
// rows only. The alarm is resolved under the new calibrator.
func TestAlarmComesWithTheShift(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(31, batchtest.Options{N: 3000, MaxLag: 5 * second})
	shift := rows[len(rows)-1].TS + second
	rows = append(rows, batchtest.Rows(32, batchtest.Options{N: 4000, MaxLag: 5 * second, Sharpness: 3,
		Start: shift})...)
	s := defaultSetup()
	s.model.Refit.Period, s.model.Refit.Method = 0, "ensemble_temperature" // which has no first answer
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	var states []string
	for _, a := range worldtest.DecodeAll[record.Alert](t, w.Outputs, pipeline.StreamAlerts) {
		states = append(states, a.State)
		if at := a.At.UnixNano(); at <= shift {
			t.Errorf("alert %s at %s, before the shift at %s", a.State, a.At, pipeline.Format(shift))
		}
		if a.Value != a.ECE-a.ECENull || a.Rows < 400 || *a.ECELo > a.ECE || a.Since.After(a.At) {
			t.Errorf("alert %+v does not add up", a)
		}
	}
	if got := strings.Join(states, " "); got != "pending firing resolved" {
		t.Errorf("states %q, want pending, firing, resolved", got)
	}
	cals := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
	if len(cals) == 0 {
		t.Fatal("no calibrator was published")
	}
	for _, c := range cals {
		// The pane of the shift has rows from before it, so the alarm starts at the latest one pane after it.
		if c.Reason != "alarm" || c.Evidence.FitFrom.UnixNano() < shift-s.model.Pane ||
			c.Evidence.FitRows+c.Evidence.TestRows < 300 {
			t.Errorf("calibrator %s of %d+%d rows from %s; want alarm, 300 or more rows, none from before %s",
				c.Reason, c.Evidence.FitRows, c.Evidence.TestRows, c.Evidence.FitFrom, pipeline.Format(shift))
		}
	}
	seen := map[string]int{}
	decided, snapshots := w.Model.Remembered()
	for _, rec := range decided {
		seen[fmt.Sprintf("%T", rec)]++
	}
	for s, err := range snapshots {
		seen[fmt.Sprintf("%T", s)]++
		if err != nil {
			t.Error(err)
		}
	}
	if seen["*record.Snapshot"] != 4 || seen["*record.Alert"] != 1 || seen["*record.Calibrator"] != 1 {
		t.Errorf("remembered %v, want the latest of 4 windows, 1 rule and 1 model version", seen)
	}
}
