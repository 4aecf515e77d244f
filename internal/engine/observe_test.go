package engine

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestLogOfAnInhibitedAlert: the log line of an alert that nobody is notified of says so; "firing" alone would look
// like one more alarm.
func TestLogOfAnInhibitedAlert(t *testing.T) {
	for by, want := range map[string]string{"": "", "m/1//root": "inhibited_by=m/1//root",
		"calibrator 2": `inhibited_by="calibrator 2"`} {
		var log strings.Builder
		rt := &Engine{}
		rt.Log = slog.New(slog.NewTextHandler(&log, nil))
		rt.logRecord(&record.Alert{Model: "m", Version: "1", Rule: "excess", State: "firing", InhibitedBy: by})
		if got := log.String(); !strings.Contains(got, "state=firing") || !strings.Contains(got, want) ||
			strings.Contains(got, "inhibited_by") != (want != "") {
			t.Errorf("by %q: %s", by, got)
		}
	}
}
