package engine_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestAlertLines: no line says what the line before it of the same alert said, and the last one tells the last state.
// TestReplayKeepsAllDecisions: of a long stream the result has the first publication too, with its evidence.
func TestReplayKeepsAllDecisions(t *testing.T) {
	r := engine.NewReplay(config.Default(), slog.New(slog.DiscardHandler))
	defer r.Close()
	if err := r.Open(1); err != nil {
		t.Fatal(err)
	}
	const n = 2000
	for i := range n {
		at := record.At(int64(i+1) * 3600e9)
		c := record.Calibrator{Model: "m", Version: "1", DecidedAt: at, EffectiveFrom: at, Revision: 1}
		if i == 0 {
			c.Published, c.Calibrator = true, []byte(`{"version":1,"method":"temperature","temperature":2}`)
			c.Evidence.FitRows, c.Evidence.NLLDiff = 500, -.25
		}
		r.Show(&c)
		r.Show(&record.Alert{Model: "m", Version: "1", Rule: "r", State: []string{"firing", "resolved"}[i%2], At: at})
	}
	res, err := r.Result(time.Second)
	if err != nil || len(res.Calibrators) != n || len(res.Alerts) != n {
		t.Fatalf("got %d calibrators and %d alerts, %v, want %d", len(res.Calibrators), len(res.Alerts), err, n)
	}
	first := res.Calibrators[0]
	if e := first.Evidence; !first.Published || e.FitRows != 500 || e.NLLDiff != -.25 {
		t.Errorf("got %+v, want the publication", first)
	}
}

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
