package engine_test

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestAlertLines: no line says what the line before it of the same alert said, and the last one tells the last state.
func TestAlertLines(t *testing.T) {
	var res engine.ReplayResult
	add := func(slice, rule, state, by string) {
		res.Alerts = append(res.Alerts, record.Alert{Model: "m", Version: "1", Slice: slice, Rule: rule, State: state,
			InhibitedBy: by, Message: "text", At: record.At(int64(len(res.Alerts)) * 1e9)})
	}
	add("", "raw", "firing", "")
	add("region=a/b", "excess", "firing", "m/1//raw")
	add("", "excess", "pending", "m/1//raw")
	add("", "raw", "firing", "calibrator 2")
	add("", "raw", "firing", "calibrator 2")
	add("", "excess", "firing", "m/1/region=a/b/excess")
	add("region=a/b", "excess", "firing", "")
	add("", "raw", "resolved", "calibrator 2")
	add("", "raw", "firing", "")
	want := []string{
		"1970-01-01T00:00:00Z  m/1   raw is firing: text",
		"1970-01-01T00:00:01Z  m/1 region=a/b  excess is firing (inhibited: follows from raw of all rows): text",
		"1970-01-01T00:00:02Z  m/1   excess is pending (inhibited: follows from raw): text",
		"1970-01-01T00:00:03Z  m/1   raw is firing (inhibited: answered by calibrator 2): text",
		"1970-01-01T00:00:05Z  m/1   excess is firing (inhibited: follows from excess of region=a/b): text",
		"1970-01-01T00:00:06Z  m/1 region=a/b  excess is firing (no longer inhibited): text",
		"1970-01-01T00:00:07Z  m/1   raw is resolved: text",
		"1970-01-01T00:00:08Z  m/1   raw is firing: text",
	}
	if got := res.AlertLines(); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
