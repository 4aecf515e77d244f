package metrics

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

func scrape(t *testing.T, h *history.History, tasks ...*pipeline.TaskStatus) string {
	t.Helper()
	return scrapeWorst(t, h, 0, tasks...)
}

func scrapeWorst(t *testing.T, h *history.History, worst int, tasks ...*pipeline.TaskStatus) string {
	t.Helper()
	rec := httptest.NewRecorder()
	Handler(h, Options{Worst: worst, Silent: time.Hour}, func() []*pipeline.TaskStatus { return tasks }).ServeHTTP(rec,
		httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("scrape answers %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

var sampleLine = regexp.MustCompile(`^(plumbline_\w+(?:\{.*\})?) (\S+)$`)

// samples parses our own series of a scrape.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		if m := sampleLine.FindStringSubmatch(sc.Text()); m != nil {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				t.Fatalf("%s: %v", sc.Text(), err)
			}
			if _, twice := out[m[1]]; twice {
				t.Errorf("series %s twice", m[1])
			}
			out[m[1]] = v
		}
	}
	return out
}

// moment is a time of a test.
func moment(text string) record.Time {
	t, err := record.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

func ptr(x float64) *float64 { return &x }

// fullSnapshot has a value of its own in every field that is exported.
func fullSnapshot() record.Snapshot {
	m := func(d float64) record.Metrics {
		return record.Metrics{
			N:              100 + int64(1000*d),
			ECE:            ptr(.1 + d),
			ECENull:        ptr(.02 + d),
			ECELo:          ptr(.08 + d),
			ECEHi:          ptr(.12 + d),
			Accuracy:       ptr(.8 + d),
			MeanConfidence: ptr(.9 + d),
			NLL:            ptr(.5 + d),
			Brier:          ptr(.3 + d),
			CWECE:          ptr(.04 + d),
		}
	}
	served := m(.03)
	return record.Snapshot{
		Schema:  1,
		Model:   "m",
		Version: "v",
		Slice:   `region="north"`,
		At:      moment("2026-01-31T00:00:10.5Z"),
		Window: record.Window{Name: "10m", Kind: "time", Start: moment("2026-01-30T23:50:00Z"),
			End: moment("2026-01-31T00:00:00Z")},
		Predictions: 400,
		Labelled:    100,
		Coverage:    ptr(.25),
		Lag:         record.Lag{Mean: 9, P50: 5, P90: 20, P99: 60},
		Raw:         m(0),
		Calibrated:  m(.01),
		Served:      &served,
		Unlabelled: &record.Unlabelled{Rows: 400, ReferenceRows: 1000,
			Distances: map[string]record.Distances{"msp": {KS: record.Distance{Value: .1, Threshold: .2}}},
			Estimates: []record.Estimate{{Method: "confidence-based", Accuracy: ptr(.8), Lo: ptr(.7),
				Hi: ptr(.9), ECE: ptr(.03), Miss: &record.Miss{Labelled: 100, Difference: .02, SE: .04, Z: .5}},
				{Method: "correctness shift (BBSE)", Rejected: true}},
			Classes: &record.Classes{PSI: &record.Distance{Value: .1, Threshold: .2},
				Shifts: []record.ClassShift{{Method: "label shift (BBSE)", Distance: .1, P: .5}}}},
		InForce: &record.InForce{Version: 3, Method: "temperature", EffectiveFrom: moment("2026-01-30T00:00:00Z")},
	}
}

func TestScrapeEqualsTheHistory(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(fullSnapshot())
	for i, state := range []string{"firing", "resolved"} {
		h.AddAlert(record.Alert{Model: "m", Version: "v", Rule: fmt.Sprintf("rule%d", i), Severity: "warning",
			State: state, Since: moment("2026-01-31T00:00:00Z"), At: moment("2026-01-31T00:00:10Z")})
	}
	h.AddAlert(record.Alert{Model: "m", Version: "v", Rule: "rule2", Severity: "info", State: "firing",
		InhibitedBy: "m/v//rule0", Since: moment("2026-01-31T00:00:00Z"), At: moment("2026-01-31T00:00:10Z")})
	for i, outcome := range []string{"no change: 12 rows", "published: better"} {
		h.AddCalibrator(record.Calibrator{Model: "m", Version: "v", Revision: i, Published: i == 1, Reason: "alarm",
			Outcome: outcome, DecidedAt: moment(fmt.Sprintf("2026-01-31T00:00:%d0Z", i))})
	}
	task := &pipeline.TaskStatus{Task: "shard", Partition: 2, Next: map[string]int64{"logits": 17, "labels": 9},
		WM: 1769817600_500000000, CaughtUp: true,
		Counts: map[string]int64{"rows:logits": 403, "predictions": 400, "waiting": 397, "rejected:classes": 3,
			"dead_letters:truncated": 1}}
	fresh := &pipeline.TaskStatus{Task: "model", WM: pipeline.NoTime}
	text := scrape(t, h, task, fresh)
	got := samples(t, text)
	key := `model="m",slice="region=\"north\"",`
	tail := `version="v",window="10m"`
	want := map[string]float64{
		`plumbline_export_dropped_keys`:                      0,
		`plumbline_export_slices_left_out`:                   0,
		`plumbline_window_predictions{` + key + tail + `}`:   400,
		`plumbline_label_coverage_ratio{` + key + tail + `}`: .25,
		`plumbline_window_end_timestamp_seconds{` + key + tail +
			`}`: 1769817610.5,
		`plumbline_calibrator_revision{model="m",version="v"}`:                                                 3,
		`plumbline_alert_state{model="m",rule="rule0",severity="warning",slice="",state="firing",version="v"}`: 1,
		`plumbline_alert_state{model="m",rule="rule2",severity="info",slice="",state="inhibited",version="v"}`: 1,
		`plumbline_events_total{event="predictions",partition="2",reason="",task="shard"}`:                     400,
		`plumbline_events_total{event="rejected",partition="2",reason="classes",task="shard"}`:                 3,
		`plumbline_events_total{event="dead_letters",partition="2",reason="truncated",task="shard"}`:           1,
		`plumbline_events_total{event="rows",partition="2",reason="logits",task="shard"}`:                      403,
		`plumbline_waiting_rows{kind="predictions",partition="2"}`:                                             397,
		// 400 predictions, 397 fates
		`plumbline_rows_unaccounted{partition="2"}`:                             3,
		`plumbline_watermark_timestamp_seconds{partition="2",task="shard"}`:     1769817600.5,
		`plumbline_task_caught_up{partition="2",task="shard"}`:                  1,
		`plumbline_task_caught_up{partition="0",task="model"}`:                  0,
		`plumbline_task_next_offset{input="logits",partition="2",task="shard"}`: 17,
		`plumbline_task_next_offset{input="labels",partition="2",task="shard"}`: 9,
	}
	for q, v := range map[string]float64{"50": 5, "90": 20, "99": 60} {
		want[`plumbline_label_lag_seconds{model="m",percentile="`+q+`",slice="region=\"north\"",`+tail+`}`] = v
	}
	s := fullSnapshot()
	for signal, m := range map[string]*record.Metrics{"raw": &s.Raw, "calibrated": &s.Calibrated, "served": s.Served} {
		l := `{model="m",signal="` + signal + `",slice="region=\"north\"",` + tail + `}`
		for name, v := range map[string]float64{"ece_ratio": *m.ECE, "ece_null_ratio": *m.ECENull,
			"ece_lower_ratio": *m.ECELo, "ece_upper_ratio": *m.ECEHi, "accuracy_ratio": *m.Accuracy,
			"mean_confidence_ratio": *m.MeanConfidence, "nll_nats": *m.NLL, "brier_score": *m.Brier,
			"cwece_ratio":          *m.CWECE,
			"window_labelled_rows": float64(m.N)} {
			want["plumbline_"+name+l] = v
		}
	}
	for distance, bounds := range map[string][2]float64{"ks": {.1, .2}, "wasserstein": {}, "psi": {}, "js": {}} {
		l := `{distance="` + distance + `",model="m",score="msp",slice="region=\"north\"",` + tail + `}`
		want["plumbline_confidence_distance"+l], want["plumbline_confidence_distance_threshold"+l] = bounds[0],
			bounds[1]
	}
	for name, v := range map[string]float64{"estimated_accuracy_ratio": .8, "estimated_accuracy_lower_ratio": .7,
		"estimated_accuracy_upper_ratio": .9,
		"estimated_ece_ratio":            .03, "estimate_miss_ratio": .02, "estimate_miss_standard_errors": .5} {
		want["plumbline_"+name+`{method="confidence",model="m",slice="region=\"north\"",`+tail+`}`] = v
	}
	classes := `{distance="psi",model="m",slice="region=\"north\"",` + tail + `}`
	want["plumbline_class_share_distance"+classes], want["plumbline_class_share_distance_threshold"+classes] = .1, .2
	shift := `{method="label_shift",model="m",slice="region=\"north\"",` + tail + `}`
	want["plumbline_label_shift_distance"+shift], want["plumbline_label_shift_p_value"+shift] = .1, .5
	want[`plumbline_refit_state{model="m",reason="alarm",result="published",version="v"}`] = 1
	want[`plumbline_refit_decided_timestamp_seconds{model="m",version="v"}`] = 1769817610
	want[`plumbline_calibrator_published_timestamp_seconds{model="m",reason="alarm",version="v"}`] = 1769817610
	for _, saved := range []string{`{partition="2",task="shard"}`, `{partition="0",task="model"}`} {
		saved = "plumbline_task_saved_timestamp_seconds" + saved
		if age := time.Since(time.UnixMilli(int64(got[saved] * 1e3))); age < 0 || age > time.Minute {
			t.Errorf("%s is %v ago, want now", saved, age)
		}
		delete(got, saved)
	}
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s = %v (present: %v), want %v", k, g, ok, v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s = %v, which the history does not have", k, got[k])
		}
	}
	problems, err := promlint.New(bytes.NewReader([]byte(text))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "plumbline_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestScrapeOfNothing(t *testing.T) {
	if got := samples(t, scrape(t, history.New(history.Config{}))); len(got) != 2 {
		t.Errorf("series %v, want what was left out and dropped alone", got)
	}
}

// TestUndefinedIsAbsent: a value that is not known is left out, never 0 or NaN.
func TestUndefinedIsAbsent(t *testing.T) {
	h := history.New(history.Config{})
	h.AddSnapshot(record.Snapshot{Model: "m", Version: "v", At: moment("2026-01-31T00:00:10Z"),
		Window: record.Window{Name: "last", Kind: "rows", End: moment("2026-01-31T00:00:10Z")}})
	got, rows := samples(t, scrape(t, h)), 0
	for k, v := range got {
		if strings.HasPrefix(k, "plumbline_window_labelled_rows") && v == 0 {
			rows++
		}
		if !strings.HasPrefix(k, "plumbline_window_labelled_rows") && !strings.HasPrefix(k, "plumbline_window_end") &&
			k != "plumbline_export_dropped_keys" && k != "plumbline_export_slices_left_out" &&
			!strings.HasPrefix(k, "plumbline_calibrator_revision") {
			t.Errorf("%s = %v of a window without rows", k, v)
		}
	}
	if rows != 2 {
		t.Errorf("%d series say that the window has no rows, want those of raw and calibrated: %v", rows, got)
	}
}

func TestScrapeIsBounded(t *testing.T) {
	h := history.New(history.Config{Keys: MaxSeries + 20})
	for i := range MaxSeries + 7 {
		s := fullSnapshot()
		s.Slice = fmt.Sprintf("tenant=%d", i)
		h.AddSnapshot(s)
	}
	got := samples(t, scrapeWorst(t, h, MaxSeries+20))
	n := 0
	for k := range got {
		if strings.HasPrefix(k, "plumbline_window_predictions") {
			n++
		}
	}
	if n != MaxSeries || got["plumbline_export_dropped_keys"] != 7 {
		t.Errorf("%d keys exported, %v dropped; want %d, 7", n, got["plumbline_export_dropped_keys"], MaxSeries)
	}
}

// TestWorstSlices: of many slices /metrics has those that fire and those whose ECE is surest to be too large, and the
// whole.
func TestWorstSlices(t *testing.T) {
	h := history.New(history.Config{Keys: 100})
	for i := range 20 {
		s := fullSnapshot()
		s.Slice = fmt.Sprintf("tenant=%d", i)
		if i == 0 {
			s.Slice = ""
		}
		lo := float64(i) / 100
		s.Calibrated.ECELo = &lo
		h.AddSnapshot(s)
	}
	h.AddAlert(record.Alert{Model: "m", Version: "v", Slice: "tenant=4", Rule: "r", State: "firing", InhibitedBy: "x",
		Since: moment("2026-01-31T00:00:00Z"), At: moment("2026-01-31T00:00:10Z")})
	snaps, leftOut, dropped := exported(h, spoken(h, 0), 3)
	var got []string
	for _, s := range snaps {
		got = append(got, s.Slice)
	}
	if strings.Join(got, " ") != " tenant=4 tenant=19 tenant=18" || leftOut != 16 || dropped != 0 {
		t.Errorf("%q exported, %d left out, %d dropped; want the whole, tenant=4, 19 and 18; 16, 0", got, leftOut,
			dropped)
	}
}

func TestRefitResult(t *testing.T) {
	for _, c := range []struct {
		want string
		d    record.Calibrator
	}{
		{"published", record.Calibrator{Published: true, Evidence: record.Evidence{TestRows: 10}}},
		{"kept", record.Calibrator{Evidence: record.Evidence{TestRows: 10}}},
		{"kept", record.Calibrator{Reason: record.ReasonLabels}},
		{"failed", record.Calibrator{Outcome: "no change: the fit has no rows"}},
	} {
		if got := refitResult(&c.d); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.d, got, c.want)
		}
	}
}

// TestSavedTimes: a status that stays grows old, a new one is young, and a task that comes back starts anew.
func TestSavedTimes(t *testing.T) {
	var s savedTimes
	at := func(sec int) time.Time { return time.Unix(int64(sec), 0) }
	a, b := &pipeline.TaskStatus{Task: "shard"}, &pipeline.TaskStatus{Task: "model"}
	check := func(task *pipeline.TaskStatus, want int) {
		t.Helper()
		if got := s.of(task); !got.Equal(at(want)) {
			t.Errorf("%s: got %v, want %v", task.Task, got, at(want))
		}
	}
	s.see([]*pipeline.TaskStatus{a, b}, at(1))
	s.see([]*pipeline.TaskStatus{a, b}, at(2))
	check(a, 1)
	next := *a
	s.see([]*pipeline.TaskStatus{&next, b}, at(3))
	check(&next, 3)
	check(b, 1)
	s.see([]*pipeline.TaskStatus{&next}, at(4))
	s.see([]*pipeline.TaskStatus{&next, b}, at(5))
	check(b, 5)
}

// TestSilentVersionIsLeftOut: a version that another one has left behind has no gauges any more; a model that is behind
// others has.
func TestSilentVersionIsLeftOut(t *testing.T) {
	h := history.New(history.Config{})
	for _, s := range []struct{ model, version, at string }{{"m", "old", "2026-01-31T00:00:00Z"},
		{"m", "quiet", "2026-01-31T00:30:00Z"}, {"m", "new", "2026-01-31T01:20:00Z"},
		{"paused", "1", "2026-01-30T00:00:00Z"}} {
		for _, slice := range []string{"", "region=~other"} {
			snap := fullSnapshot()
			snap.Model, snap.Version, snap.Slice, snap.At = s.model, s.version, slice, moment(s.at)
			h.AddSnapshot(snap)
		}
	}
	text := scrape(t, h)
	for version, shown := range map[string]bool{"old": false, "quiet": true, "new": true, "1": true} {
		if strings.Contains(text, `version="`+version+`"`) != shown {
			t.Errorf("version %s is exported: %t, want %t", version, !shown, shown)
		}
	}
}
