package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

const series = "model=digits-resnet20&version=2024-03-01&window=last-5000"

func testHandler(h *history.History) http.Handler {
	return newHandler(Deps{
		History: h,
		Status:  func() any { return map[string]any{"shards": 4, "lag_rows": 1234} },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, "# HELP x\n")
		}),
	}, 50*time.Millisecond)
}

func do(h http.Handler, method, url string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, url, nil))
	return rec
}

func fetch(t *testing.T, h http.Handler, url string, into any) {
	t.Helper()
	rec := do(h, "GET", url)
	if rec.Code != 200 {
		t.Fatalf("%s: got %d %s", url, rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

func TestErrors(t *testing.T) {
	h := testHandler(synthetic())
	for _, c := range []struct {
		method, url string
		code        int
		want        string // part of the message
	}{
		{"POST", "/api/v1/models", 405, "POST is not allowed"},
		{"DELETE", "/", 405, "GET or HEAD"},
		{"GET", "/api/v1/nothing", 404, "/api/v1/nothing"},
		{"GET", "/assets/../web.go", 307, ""},
		{"GET", "/assets/js/", 404, "no such path"},
		{"GET", "/api/v1/models?x=1", 400, `unknown parameter "x"`},
		{"GET", "/api/v1/snapshots", 400, `"model" is required`},
		{"GET", "/api/v1/snapshots?model=", 400, `"model" is required`},
		{"GET", "/api/v1/snapshots?model=a&model=b", 400, "given 2 times"},
		{"GET", "/api/v1/snapshots?model=%zz", 400, "%zz"},
		{"GET", "/api/v1/snapshots?model=none", 404, `model "none"`},
		{"GET", "/api/v1/snapshots?model=digits-resnet20&slice=region=mars", 404, "region=mars"},
		{"GET", "/api/v1/snapshots?model=digits-resnet20&version=9", 404, `version "9"`},
		{"GET", "/api/v1/snapshots?model=digits-resnet20&window=1y", 404, `window "1y"`},
		{"GET", "/api/v1/snapshots?" + series + "&limit=0", 400, "from 1 to 10000"},
		{"GET", "/api/v1/snapshots?" + series + "&limit=10001", 400, `limit "10001"`},
		{"GET", "/api/v1/snapshots?" + series + "&limit=many", 400, `limit "many"`},
		{"GET", "/api/v1/snapshots?" + series + "&detail=some", 400, "full, none"},
		{"GET", "/api/v1/snapshots/latest?" + series + "&at=noon", 400, `at "noon"`},
		{"GET", "/api/v1/snapshots/latest?" + series + "&at=1970-01-01T00:00:00Z", 404, "at or before"},
		{"GET", "/api/v1/snapshots/latest?" + series + "&limit=3", 400, `unknown parameter "limit"`},
		{"GET", "/api/v1/calibrators?limit=-1", 400, `limit "-1"`},
		{"GET", "/api/v1/alerts?limit=1.5", 400, `limit "1.5"`},
		{"GET", "/api/v1/alerts?state=firing", 400, `unknown parameter "state"`},
		{"GET", "/api/v1/status?verbose=1", 400, `unknown parameter "verbose"`},
		{"GET", "/api/v1/events?since=3", 400, `unknown parameter "since"`},
		{"GET", "/api/v1/events?after=3", 400, `event id "3"`},
	} {
		rec := do(h, c.method, c.url)
		if rec.Code != c.code {
			t.Errorf("%s %s: got %d, want %d: %s", c.method, c.url, rec.Code, c.code, rec.Body)
			continue
		}
		if c.code == 307 {
			continue
		}
		var body struct{ Error string }
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || !strings.Contains(body.Error, c.want) {
			t.Errorf("%s %s: got %q (%v), want an error with %q", c.method, c.url, rec.Body, err, c.want)
		}
	}
	if got := do(h, "PUT", "/").Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: got %q", got)
	}
}

func TestModels(t *testing.T) {
	var got struct{ Models []modelInfo }
	fetch(t, testHandler(synthetic()), "/api/v1/models", &got)
	if len(got.Models) != 1 || len(got.Models[0].Versions) != 2 {
		t.Fatalf("got %+v, want one model of two versions", got)
	}
	v := got.Models[0].Versions[1]
	if v.Version != "2024-03-01" || v.Firing != 1 || v.Pending != 0 || len(v.Slices) != 3 {
		t.Errorf("got %+v, want 2024-03-01 with one firing alert and three slices", v)
	}
	if w := v.Slices[0].Windows; len(w) != 2 || w[0].Name != "5m" ||
		w[1] != (windowInfo{"last-5000", "rows", 360, stamp(time.Hour)}) {
		t.Errorf("windows of all rows: got %+v", w)
	}
	fetch(t, testHandler(history.New(history.Config{})), "/api/v1/models", &got)
	if got.Models == nil || len(got.Models) != 0 {
		t.Errorf("empty history: got %+v, want an empty list", got.Models)
	}
}

func TestSnapshots(t *testing.T) {
	h := testHandler(synthetic())
	f := func(query string, n int, first, last string, bins bool) {
		t.Helper()
		var got struct{ Snapshots []record.Snapshot }
		fetch(t, h, "/api/v1/snapshots?"+query, &got)
		s := got.Snapshots
		if len(s) != n || s[0].At.String() != first || s[n-1].At.String() != last {
			t.Fatalf("%s: got %d from %s to %s, want %d from %s to %s", query, len(s), s[0].At, s[len(s)-1].At, n,
				first, last)
		}
		if (len(s[0].Raw.Bins) > 0) != bins {
			t.Errorf("%s: got %d bins, want some: %v", query, len(s[0].Raw.Bins), bins)
		}
	}
	f(series, 360, "2024-03-05T11:30:10Z", "2024-03-05T12:30:00Z", true)
	f(series+"&limit=2&detail=none", 2, "2024-03-05T12:29:50Z", "2024-03-05T12:30:00Z", false)
	f(series+"&slice=region%3Deu", 60, "2024-03-05T12:20:10Z", "2024-03-05T12:30:00Z", true)
	f("model=digits-resnet20&window=5m", 12, "2024-03-05T11:35:00Z", "2024-03-05T12:30:00Z", true)
	f("model=digits-resnet20&version=2024-02-10", 1, "2024-03-05T11:45:00Z", "2024-03-05T11:45:00Z", true)

	var s record.Snapshot
	fetch(t, h, "/api/v1/snapshots/latest?"+series, &s)
	if s.At.String() != "2024-03-05T12:30:00Z" || s.InForce == nil || len(s.Raw.Bins) != 15 {
		t.Errorf("latest: got %+v", s)
	}
	s = record.Snapshot{}
	fetch(t, h, "/api/v1/snapshots/latest?"+series+"&at=2024-03-05T11:45:04Z", &s)
	if s.At.String() != "2024-03-05T11:45:00Z" || s.InForce != nil {
		t.Errorf("at 11:45:04: got %s, in force %v; want 11:45:00 and none", s.At, s.InForce)
	}
}

func TestDecisions(t *testing.T) {
	h := testHandler(synthetic())
	var c struct{ Calibrators []record.Calibrator }
	fetch(t, h, "/api/v1/calibrators?model=digits-resnet20&version=2024-03-01&limit=4", &c)
	if len(c.Calibrators) != 4 || !c.Calibrators[0].Published || c.Calibrators[3].Published {
		t.Errorf("calibrators: got %+v, want the newest four, oldest (published) first", c.Calibrators)
	}
	fetch(t, h, "/api/v1/calibrators?model=other", &c)
	if c.Calibrators == nil || len(c.Calibrators) != 0 {
		t.Errorf("another model: got %v, want an empty list", c.Calibrators)
	}
	var a struct{ Alerts, Current []record.Alert }
	fetch(t, h, "/api/v1/alerts?model=digits-resnet20", &a)
	if len(a.Alerts) != 4 || a.Alerts[0].State != "pending" {
		t.Errorf("alerts: got %+v, want four, pending first", a.Alerts)
	}
	if len(a.Current) != 1 || a.Current[0].Slice != "region=eu" {
		t.Errorf("current: got %+v, want that of region=eu", a.Current)
	}
}

// TestLimitOfAlerts: who asks for one alert of all models gets one, and how many there are; a model's page needs all.
func TestLimitOfAlerts(t *testing.T) {
	hist := history.New(history.Config{})
	for i := range 300 {
		hist.AddAlert(record.Alert{Model: "m", Version: "1", Slice: fmt.Sprintf("s=%03d", i), Rule: "r",
			State: "firing", At: record.At(int64(i) * 1e9)})
	}
	for query, want := range map[string]int{"?limit=1": 1, "": 300, "?model=m&limit=1": 300, "?limit=10000": 300} {
		var a struct {
			Alerts, Current []record.Alert
			Total           int `json:"current_total"`
		}
		fetch(t, testHandler(hist), "/api/v1/alerts"+query, &a)
		if len(a.Current) != want || a.Total != 300 || a.Current[want-1].Slice != "s=299" {
			t.Errorf("%q: got %d current alerts of %d, want %d of 300", query, len(a.Current), a.Total, want)
		}
	}
}

func TestStatusAndHealth(t *testing.T) {
	var notReady error
	h := New(Deps{History: synthetic(), Ready: func() error { return notReady }, Status: func() any { return 7 }})
	for url, want := range map[string]string{
		"/-/healthy": "healthy", "/-/ready": "ready",
		"/api/v1/status":  `"follows_heads":false,"history":{`,
		"/api/v1/status?": `"keeps_history":false,"process":7,"ready":true`,
	} {
		if rec := do(h, "GET", url); rec.Code != 200 || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: got %d %s, want %s", url, rec.Code, rec.Body, want)
		}
	}
	notReady = errors.New("partition 3 is restoring")
	if rec := do(h, "GET", "/-/ready"); rec.Code != 503 || !strings.Contains(rec.Body.String(), "partition 3") {
		t.Errorf("not ready: got %d %s, want 503 with the reason", rec.Code, rec.Body)
	}
	if rec := do(h, "GET", "/api/v1/status"); !strings.Contains(rec.Body.String(),
		`"not_ready_because":"partition 3 is restoring"`) {
		t.Errorf("status: got %s, want the reason", rec.Body)
	}
	if rec := do(h, "GET", "/metrics"); rec.Code != 404 {
		t.Errorf("metrics without a handler: got %d, want 404", rec.Code)
	}
	if rec := do(testHandler(synthetic()), "GET", "/metrics"); rec.Code != 200 || rec.Body.String() != "# HELP x\n" {
		t.Errorf("metrics: got %d %s", rec.Code, rec.Body)
	}
}

func TestUnencodableNumberIsAnError(t *testing.T) {
	h := history.New(history.Config{})
	h.AddCalibrator(record.Calibrator{DecidedAt: stamp(0), Evidence: record.Evidence{NLLNew: math.NaN()}})
	if rec := do(testHandler(h), "GET", "/api/v1/calibrators"); rec.Code != 500 || !strings.Contains(rec.Body.String(),
		"NaN") {
		t.Errorf("got %d %s, want 500 that names NaN", rec.Code, rec.Body)
	}
}

func TestPage(t *testing.T) {
	h := testHandler(synthetic())
	page := do(h, "GET", "/")
	body := page.Body.String()
	if page.Code != 200 || !strings.Contains(body, "<title>plumbline</title>") {
		t.Fatalf("page: got %d %.80s", page.Code, body)
	}
	for _, bad := range []string{"<script>", " style=", `="/`, " onclick=", "javascript:", "//cdn", "http://",
		"https://"} {
		if strings.Contains(body, bad) {
			t.Errorf("page has %q, which the policy or a proxy with a path forbids", bad)
		}
	}
	if got := page.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") ||
		strings.Contains(got, "unsafe") {
		t.Errorf("policy: got %q", got)
	}
	for _, part := range strings.Split(body, `"assets/`)[1:] {
		url := "/assets/" + part[:strings.IndexByte(part, '"')]
		rec := do(h, "GET", url)
		if rec.Code != 200 || rec.Header().Get("Content-Type") == "" || rec.Body.Len() == 0 {
			t.Errorf("%s: got %d, type %q, %d bytes", url, rec.Code, rec.Header().Get("Content-Type"), rec.Body.Len())
		}
	}
	req := httptest.NewRequest("GET", "/assets/js/app.js", nil)
	req.Header.Set("If-None-Match", do(h, "GET", "/assets/js/app.js").Header().Get("ETag"))
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, req); rec.Code != 304 {
		t.Errorf("unchanged asset: got %d, want 304", rec.Code)
	}
	if rec := do(h, "HEAD", "/"); rec.Code != 200 || rec.Body.Len() != 0 {
		t.Errorf("HEAD: got %d with %d bytes", rec.Code, rec.Body.Len())
	}
}

// sse is one event of a stream; a heartbeat has the type ":".
type sse struct{ id, event, data string }

// listen reads events until want of them came.
func listen(t *testing.T, srv *httptest.Server, query, lastID string, want int, started func()) []sse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/api/v1/events?"+query, nil)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("content type: got %q", got)
	}
	var out []sse
	var e sse
	for in := bufio.NewScanner(res.Body); len(out) < want && in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch {
		case in.Text() == "":
			if out = append(out, e); started != nil {
				started()
				started = nil
			}
			e = sse{}
		case name == "id":
			e.id = value
		case name == "event":
			e.event = value
		case name == "data":
			e.data = value
		case name == "":
			e.event = ":"
		}
	}
	if len(out) < want {
		t.Fatalf("got %d events, want %d: %+v", len(out), want, out)
	}
	return out
}

func TestEvents(t *testing.T) {
	h := synthetic()
	handler := testHandler(h)
	srv := httptest.NewServer(handler)
	defer srv.Close()
	position := do(handler, "GET", "/api/v1/models").Header().Get(eventIDHeader)

	other := snapshotAt("digits-resnet20", "2024-03-01", "region=eu", 61*time.Minute)
	wanted := snapshotAt("digits-resnet20", "2024-03-01", "", 61*time.Minute)
	alert := record.Alert{Model: "digits-resnet20", Version: "2024-03-01", Slice: "region=us", Rule: "r",
		State: "firing", At: stamp(61 * time.Minute)}
	got := listen(t, srv, series+"&slice=", "", 4, func() {
		h.AddSnapshot(other)
		h.AddSnapshot(wanted)
		h.AddAlert(alert)
	})
	types := []string{}
	for _, e := range got {
		if e.event != ":" {
			types = append(types, e.event)
		}
	}
	if !strings.HasPrefix(strings.Join(types, " "), "status snapshot alert") {
		t.Fatalf("got %v, want status, the snapshot of the asked slice, the alert of any slice", types)
	}

	// From the position before, both snapshots are in the backlog; of another run, everything must be loaded anew.
	got = listen(t, srv, "after="+position, "", 3, nil)
	if got[0].event != "snapshot" || !strings.Contains(got[0].data, "region=eu") || got[1].event != "snapshot" ||
		got[2].event != "alert" {
		t.Errorf("after the position: got %+v", got)
	}
	got = listen(t, srv, "after="+position, got[1].id, 1, nil)
	if got[0].event != "alert" {
		t.Errorf("Last-Event-ID must win over after: got %s, want the alert", got[0].event)
	}
	if got := listen(t, srv, "", "otherrun-3", 1, nil); got[0].event != "reset" {
		t.Errorf("another run's id: got %s, want reset", got[0].event)
	}
}

func TestHeartbeatMovesTheIDOn(t *testing.T) {
	h := synthetic()
	srv := httptest.NewServer(testHandler(h))
	defer srv.Close()
	got := listen(t, srv, "model=other", "", 3, func() {
		h.AddSnapshot(snapshotAt("digits-resnet20", "1", "", time.Hour))
	})
	last := got[len(got)-1]
	if last.event != ":" || last.id == got[0].id {
		t.Errorf("got %+v, want a heartbeat whose id is past the event that the filter left out", got)
	}
}

func TestTooManyStreams(t *testing.T) {
	h := history.New(history.Config{Subscribers: 1})
	sub, err := h.Subscribe("", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if rec := do(testHandler(h), "GET", "/api/v1/events"); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 503 with Retry-After", rec.Code, rec.Body)
	}
}

func TestShutdownEndsStreams(t *testing.T) {
	srv := Server("127.0.0.1:0", testHandler(synthetic()), quiet)
	ts := httptest.NewUnstartedServer(srv.Handler)
	ts.Config = srv
	ts.Start()
	defer ts.Close()
	res, err := http.Get(ts.URL + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("%s, %s: no stream is open", res.Status, kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Fatalf("shutdown with an open stream: %v", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}
