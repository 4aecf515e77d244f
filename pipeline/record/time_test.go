package record_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// textTimes is a record whose times are texts, as JSON has them, and timed the same with times.
type (
	textTimes struct {
		At    string `json:"at"`
		Since string `json:"since,omitempty"`
	}
	timed struct {
		At    record.Time `json:"at"`
		Since record.Time `json:"since,omitzero"`
	}
)

// TestTime holds a time against its text: in JSON there and back, and where there is none.
func TestTime(t *testing.T) {
	for text, ns := range map[string]int64{
		"1970-01-01T00:00:00Z":           0,
		"1970-01-01T00:00:00.000000001Z": 1,
		"1969-12-31T23:59:59.999999999Z": -1,
		"2026-01-31T12:00:00.5Z":         time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC).UnixNano(),
		"1677-09-21T00:12:43.145224192Z": math.MinInt64,
		"2262-04-11T23:47:16.854775807Z": math.MaxInt64,
	} {
		at := record.At(ns)
		if at.IsZero() || at.UnixNano() != ns || at.String() != text || at.Std() != time.Unix(0, ns).UTC() {
			t.Errorf("%d: got %s, want %s", ns, at, text)
		}
		if back, err := record.ParseTime(text); err != nil || back != at {
			t.Errorf("%s: got %v, %v", text, back, err)
		}
		sameJSON(t, timed{at, at}, textTimes{text, text})
	}
	sameJSON(t, timed{}, textTimes{})
	zoned, err := record.ParseTime("2026-01-31T13:00:00+01:00")
	if err != nil || zoned.String() != "2026-01-31T12:00:00Z" {
		t.Errorf("time in another zone: got %s, %v", zoned, err)
	}
}

// sameJSON checks that two records have the same bytes, and that those are read back as the first.
func sameJSON(t *testing.T, got timed, want textTimes) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("got %s, want %s", g, w)
	}
	back := timed{Since: record.At(7)}
	if err := json.Unmarshal(g, &back); err != nil {
		t.Fatal(err)
	}
	if want.Since == "" {
		got.Since = record.At(7) // it is absent
	}
	if back != got {
		t.Errorf("%s: got %+v, want %+v", g, back, got)
	}
}

// TestNoTime checks that a record with a text that is no time is read, without the time.
func TestNoTime(t *testing.T) {
	for _, text := range []string{`""`, `"noon"`, `"2024-13-01T00:00:00Z"`, `"1500-01-01T00:00:00Z"`,
		`"2300-01-01T00:00:00Z"`} {
		got := timed{At: record.At(5)}
		if err := json.Unmarshal([]byte(`{"at":`+text+`}`), &got); err != nil || !got.At.IsZero() {
			t.Errorf("%s: got %s, %v", text, got.At, err)
		}
	}
	var got timed
	if json.Unmarshal([]byte(`{"at":5}`), &got) == nil {
		t.Error("a number is a time")
	}
	first := record.At(math.MinInt64)
	if (record.Time{}).After(first) || !first.After(record.Time{}) || first.After(first) || !record.At(1).After(first) {
		t.Error("order of times: no time comes first")
	}
}

func FuzzTime(f *testing.F) {
	for _, ns := range []int64{0, 1, -1, 1e9, math.MinInt64, math.MaxInt64} {
		f.Add(ns, time.Unix(0, ns).UTC().Format(time.RFC3339Nano))
	}
	f.Add(int64(5), "2026-01-31T13:00:00.250+01:00")
	f.Add(int64(5), "noon")
	f.Fuzz(func(t *testing.T, ns int64, text string) {
		old := time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
		sameJSON(t, timed{record.At(ns), record.At(ns)}, textTimes{old, old})
		at, err := record.ParseTime(text)
		if err != nil {
			return
		}
		if std, err := time.Parse(time.RFC3339Nano, text); err != nil || !std.Equal(at.Std()) {
			t.Errorf("%q: got %s, want %s, %v", text, at, std, err)
		}
	})
}
