//go:build integration

package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Drift streams: 10,000 clean rows, then 10,000 noisy ones, 20 rows a second of event time.
const (
	driftRate   = 20
	driftBefore = 10000
	driftTotal  = 20000
)

// The two uses of the rule, without first answers, which leave it nothing to fire at. "calibrated" is the usual one: a
// calibrator is fitted on clean rows by period, the rule watches what is left over, once a window of rows has passed
// since the first calibrator (warm-up). "raw" has no calibrator before the alarm: the clean net's own ECE of 12 % is
// accepted, and the alarm is for the noisy one's 34 %.
var driftSetups = []struct{ signal, yaml string }{
	{"calibrated", `
rules:
- {name: ece, signal: calibrated, rows: 2000, min_rows: 1000, warmup_rows: 8500, fire: 0.05, clear: 0.03,
   for: 20s, clear_for: 30s}
refit: {method: temperature, first_answer: false, period: 150s, fresh_rows: 2000, min_rows: 1000, max_rows: 3000}
`},
	{"raw", `
rules:
- {name: ece, signal: raw, rows: 2000, min_rows: 1000, warmup_rows: 2000, fire: 0.18, clear: 0.15,
   for: 20s, clear_for: 30s}
refit: {method: temperature, first_answer: false, period: 0s, fresh_rows: 2000, min_rows: 1000, max_rows: 3000}
`},
}

// The alarm of every model is off: the clean net is beyond its tolerance from the first row on, and it says so.
const driftCommon = `
alarm: {enabled: false}
event_time: {idle_timeout: 0s}
windows: [{name: day, kind: time, size: 24h}, {name: last2000, kind: rows, rows: 2000}]
`

// TestDrift: the alarm comes after the change and never before; a calibrator is published after it, and on the rows
// after that the calibrated ECE is below half of the raw one.
func TestDrift(t *testing.T) {
	t.Parallel()
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	var table strings.Builder
	table.WriteString("| signal | seed | rows to the alarm | calibrators before → after the alarm " +
		"| raw ECE after | calibrated ECE after | rows |\n|---|---|---|---|---|---|---|\n")
	for _, setup := range driftSetups {
		for seed := 1; seed <= 5; seed++ {
			t.Run(fmt.Sprintf("%s/seed=%d", setup.signal, seed), func(t *testing.T) {
				table.WriteString(drift(t, file, setup.signal, setup.yaml, seed))
			})
		}
	}
	t.Logf("table:\n%s", table.String())
	if !t.Failed() {
		writeSection(t, "drift", table.String())
	}
}

func drift(t *testing.T, file, signal, yaml string, seed int) (row string) {
	s := configure(t, driftCommon+strings.TrimPrefix(yaml, "\n"))
	p := run(t, s)
	runOK(t, "produce", "-c", s.file, "--labels", "test_labels", "--model", "net", "--version", "1",
		"--shuffle", "--seed", fmt.Sprint(seed), "--event-rate", fmt.Sprint(driftRate),
		"--start", start.Format(time.RFC3339), "--label-delay", "0s-10s",
		file+":resnet20", file+":resnet20_gauss_noise_s1")
	p.drain(driftTotal, driftTotal)
	p.stop()
	snaps := latest(t, s)

	change := start.Add(driftBefore / driftRate * time.Second)
	alarm := firstAlarm(t, s, change)
	first, before := calibratorAfter(t, s, signal, alarm)
	in := finalInForce(t, snaps)
	if from := in.EffectiveFrom.Std(); from.Before(first) {
		t.Errorf("calibrator in force at the end: from %v, want that published after the alarm, at %v, or later", from,
			first)
	}
	raw, calibrated := value(t, "raw ece in force", in.Raw.ECE), value(t, "calibrated ece in force", in.Calibrated.ECE)
	if in.Raw.N != in.Calibrated.N || in.Raw.N < 1000 {
		t.Errorf("rows after the calibrator: got raw %d, calibrated %d; want the same, at least 1000", in.Raw.N,
			in.Calibrated.N)
	}
	if !(calibrated < raw/2) {
		t.Errorf("after the calibrator: got calibrated ece %.4f, want below half of the raw one, %.4f", calibrated, raw)
	}
	rows := alarm.Sub(change).Seconds() * driftRate
	return fmt.Sprintf("| %s | %d | %.0f | %d → v%d | %.2f %% | %.2f %% | %d |\n", signal, seed, rows, before,
		in.Version, 100*raw, 100*calibrated, in.Raw.N)
}

// firstAlarm returns the time of the first firing alert; none may be before the change.
func firstAlarm(t *testing.T, s settings, change time.Time) time.Time {
	t.Helper()
	var first time.Time
	for _, a := range records[record.Alert](t, s.topic("alerts")) {
		if a.State != "firing" {
			continue
		}
		at := a.At.Std()
		if !at.After(change) {
			t.Errorf("alarm at %v, before the change at %v: %s", at, change, a.Message)
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		t.Fatalf("no alarm; the change was at %v", change)
	}
	return first
}

// calibratorAfter returns when the first calibrator decided at or after the alarm came into force, and the number
// of those before.
func calibratorAfter(t *testing.T, s settings, signal string, alarm time.Time) (first time.Time, before int) {
	t.Helper()
	for _, c := range records[record.Calibrator](t, s.topic("calibrators")) {
		if !c.Published {
			continue
		}
		from := c.EffectiveFrom.Std()
		switch {
		case from.Before(alarm):
			before++
		case first.IsZero() || from.Before(first):
			first = from
		}
	}
	if first.IsZero() {
		t.Fatalf("no calibrator was published after the alarm at %v", alarm)
	}
	if signal == "raw" && before != 0 {
		t.Errorf("got %d calibrators before the alarm, want 0 without refits by period", before)
	}
	if signal == "calibrated" && before == 0 {
		t.Error("got no calibrator before the alarm, want that of the clean rows")
	}
	return first, before
}

func finalInForce(t *testing.T, snaps []record.Snapshot) *record.InForce {
	t.Helper()
	for _, s := range snaps {
		if s.Model == "net" && s.Slice == "" && s.Window.Name == "day" {
			if s.InForce == nil {
				t.Fatal("no calibrator is in force in the final snapshot")
			}
			return s.InForce
		}
	}
	t.Fatalf("no snapshot of window day among %d", len(snaps))
	return nil
}

func value(t *testing.T, name string, v *float64) float64 {
	t.Helper()
	if v == nil {
		t.Errorf("%s is null", name)
		return math.NaN()
	}
	return *v
}
