package engine

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestLogOfAnInhibitedAlert: the log line of an alert that nobody is notified of says so; "firing" alone would look
// like one more alarm.
func TestLogOfAnInhibitedAlert(t *testing.T) {
	for by, want := range map[string]string{"": "", "m/1//root": "inhibited_by=m/1//root",
		"calibrator 2": `inhibited_by="calibrator 2"`} {
		var log strings.Builder
		v := &view{log: slog.New(slog.NewTextHandler(&log, nil))}
		v.logRecord(&record.Alert{Model: "m", Version: "1", Rule: "excess", State: "firing", InhibitedBy: by})
		if got := log.String(); !strings.Contains(got, "state=firing") || !strings.Contains(got, want) ||
			strings.Contains(got, "inhibited_by") != (want != "") {
			t.Errorf("by %q: %s", by, got)
		}
	}
}

// TestViewGivesShardsCalibrators: what a record says is in force once it is shown, and a record without a time is an
// error that changes nothing.
func TestViewGivesShardsCalibrators(t *testing.T) {
	cfg := config.Default()
	v := newView(&cfg, slog.New(slog.DiscardHandler))
	encoded, err := calibrator.Encode(calibrator.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	key := arrowio.ModelKey{Model: "m", Version: "1"}
	c := record.Calibrator{Model: "m", Version: "1", Revision: 3, Published: true, Classes: 5, Calibrator: encoded,
		DecidedAt: record.At(1)}
	if _, _, ok := v.published.Newest(key); v.showRecord(&c) == nil || ok {
		t.Error("a calibrator from no time is in force")
	}
	c.EffectiveFrom = record.At(1)
	if err := v.showRecord(&c); err != nil {
		t.Fatal(err)
	}
	if l, _, ok := v.published.Newest(key); !ok || l.Revision != 3 || v.classes.Of(key) != 5 {
		t.Errorf("revision %d of %d classes, want 3 of 5", l.Revision, v.classes.Of(key))
	}
	if got := v.History.Calibrators("m", "1", 0); len(got) != 1 {
		t.Errorf("the page shows %d decisions, want the one", len(got))
	}
}

// TestOnTopic: a revision that the topic has is not published again, and nothing of a topic that was made again counts.
func TestOnTopic(t *testing.T) {
	var o onTopic
	o.has("m/1", &record.Calibrator{Revision: 2})
	o.has("m/1", &record.Calibrator{Revision: 1})
	if o.lacks("m/1", 2) || !o.lacks("m/1", 3) || !o.lacks("m/2", 0) || o.misses("m/1") || !o.misses("m/2") {
		t.Error("what the topic has is not known")
	}
	if o.anew(); !o.lacks("m/1", 2) || !o.misses("m/1") || o.again() != 1 {
		t.Error("a topic that was made again has what the one before had")
	}
}
