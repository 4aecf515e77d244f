package calibrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/eventually"
)

// table is a Source that tests publish to.
type table struct {
	mu      sync.Mutex
	f       InForce
	changed chan struct{}
	away    error
	classes int
}

func newTable() *table {
	return &table{f: InForce{Model: "m/1", Version: "7", Calibrator: calibrator.Identity{}},
		changed: make(chan struct{})}
}

func (s *table) Latest(model, version string) (InForce, <-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f, s.changed, model == s.f.Model && (version == "" || version == s.f.Version)
}

func (s *table) Classes(string, string) int { return s.classes }

func (s *table) Ready() error { return s.away }

func (s *table) publish(c calibrator.Calibrator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.Revision++
	s.f.Calibrator, s.f.From = c, time.Date(2026, 1, 1, 0, 0, s.f.Revision, 0, time.UTC)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *table) correct(top calibrator.Correction, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.Top, s.f.TopFrom = &top, at
	close(s.changed)
	s.changed = make(chan struct{})
}

func serve(t *testing.T) (*table, string) {
	t.Helper()
	s := newTable()
	srv := httptest.NewServer(New(s, slog.New(slog.DiscardHandler)))
	t.Cleanup(srv.Close)
	return s, srv.URL + Prefix + "m%2F1"
}

func do(t *testing.T, method, url string, header map[string]string, body []byte) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

func temperature(t *testing.T, v float64) calibrator.Temperature {
	t.Helper()
	c, err := calibrator.NewTemperature(v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFollow is how a model server follows: get, not modified, a long poll that the next publication ends.
func TestFollow(t *testing.T) {
	s, url := serve(t)
	url += "/calibrator"
	resp, body := do(t, http.MethodGet, url, nil, nil)
	if want := `{"model":"m/1","version":"7","revision":0,"calibrator":{"version":1,"method":"identity"}}` +
		"\n"; resp.StatusCode != 200 || string(body) != want {
		t.Fatalf("%d %s, want %s", resp.StatusCode, body, want)
	}
	tag := resp.Header.Get("ETag")
	resp, body = do(t, http.MethodGet, url, map[string]string{"If-None-Match": tag}, nil)
	if resp.StatusCode != http.StatusNotModified || len(body) != 0 || resp.Header.Get("ETag") != tag {
		t.Fatalf("%d %q, ETag %s: want 304 and %s", resp.StatusCode, body, resp.Header.Get("ETag"), tag)
	}
	if resp, _ = do(t, http.MethodGet, url+"?wait=20ms", map[string]string{"If-None-Match": tag},
		nil); resp.StatusCode != http.StatusNotModified {
		t.Fatalf("a poll without news: %d, want 304", resp.StatusCode)
	}
	cal := temperature(t, 2)
	time.AfterFunc(50*time.Millisecond, func() { s.publish(cal) })
	resp, body = do(t, http.MethodGet, url+"?wait=40s&version=7", map[string]string{"If-None-Match": `"x", ` + tag},
		nil)
	var got record
	if err := json.Unmarshal(body, &got); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s: %v", resp.StatusCode, body, err)
	}
	if c, err := calibrator.Decode(got.Calibrator); err != nil || c != calibrator.Calibrator(cal) ||
		got.Revision != 1 || got.EffectiveFrom != "2026-01-01T00:00:01Z" {
		t.Errorf("%+v (%v), want T = 2 as revision 1", got, err)
	}
	next := resp.Header.Get("ETag")
	if next == tag || next == "" {
		t.Errorf("ETag %s after %s", next, tag)
	}
	// A correction of the top confidence is news too, and what the process calibrates has it.
	time.AfterFunc(50*time.Millisecond, func() {
		s.correct(calibrator.Correction{Power: 2, TopCorrection: calibrator.TopCorrection{Slope: .5, Intercept: .25}},
			time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
	})
	resp, body = do(t, http.MethodGet, url+"?wait=40s", map[string]string{"If-None-Match": next}, nil)
	want := `"top":{"power":2,"slope":0.5,"intercept":0.25,"effective_from":"2026-01-01T00:01:00Z"}}`
	if resp.StatusCode != 200 || !strings.Contains(string(body), want) || resp.Header.Get("ETag") == next {
		t.Errorf("%d %s, ETag %s: want %s", resp.StatusCode, body, resp.Header.Get("ETag"), want)
	}
	_, body = do(t, http.MethodPost, strings.TrimSuffix(url, "or")+"e", map[string]string{"Content-Type": typeJSON},
		[]byte(`{"logits":[[3,0]]}`))
	var rows answer
	if err := json.Unmarshal(body, &rows); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if p, want := rows.Probabilities[0][0], 1/(1+math.Exp(-(.5*3+.25))); math.Abs(p-want) > 1e-12 {
		t.Errorf("corrected to %g, want %g", p, want)
	}
	if top := rows.Top; top == nil || top.Slope != .5 || top.EffectiveFrom != "2026-01-01T00:01:00Z" {
		t.Errorf("%s: the answer names the correction as %+v", body, top)
	}
	// So is one of a predicted class alone.
	own := calibrator.ClassCorrection{Class: 1, TopCorrection: calibrator.TopCorrection{Slope: .5, Intercept: .25}}
	s.correct(calibrator.Correction{TopCorrection: calibrator.TopCorrection{Slope: 1},
		Apart: []calibrator.ClassCorrection{own}}, time.Date(2026, 1, 1, 0, 2, 0, 0, time.UTC))
	_, body = do(t, http.MethodGet, url, nil, nil)
	want = `"top":{"slope":1,"intercept":0,"apart":[{"class":1,"slope":0.5,"intercept":0.25}],` +
		`"effective_from":"2026-01-01T00:02:00Z"}}`
	if !strings.Contains(string(body), want) {
		t.Errorf("%s: want %s", body, want)
	}
	_, body = do(t, http.MethodPost, strings.TrimSuffix(url, "or")+"e", map[string]string{"Content-Type": typeJSON},
		[]byte(`{"logits":[[0,3]]}`))
	if err := json.Unmarshal(body, &rows); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if p, want := rows.Probabilities[0][1], 1/(1+math.Exp(-(.5*1.5+.25))); math.Abs(p-want) > 1e-12 {
		t.Errorf("class 1 corrected to %g, want %g", p, want)
	}
}

// TestNotReady: before all that was published is known there is no answer, least of all the identity.
func TestNotReady(t *testing.T) {
	s, url := serve(t)
	s.away = errors.New("not read yet")
	resp, body := do(t, http.MethodGet, url+"/calibrator", nil, nil)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "not read yet") {
		t.Errorf("%d %s, Retry-After %q", resp.StatusCode, body, resp.Header.Get("Retry-After"))
	}
}

// TestPollOutlivesTheServersTimeouts: they are for requests that are slow to come and answers that are slow to be read.
func TestPollOutlivesTheServersTimeouts(t *testing.T) {
	s := newTable()
	srv := httptest.NewUnstartedServer(New(s, slog.New(slog.DiscardHandler)))
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	time.AfterFunc(300*time.Millisecond, func() { s.publish(calibrator.Identity{}) })
	resp, body := do(t, http.MethodGet, srv.URL+Prefix+"m%2F1/calibrator?wait=40s",
		map[string]string{"If-None-Match": s.f.etag()}, nil)
	if resp.StatusCode != 200 || !strings.Contains(string(body), `"revision":1`) {
		t.Errorf("%d %q, want revision 1", resp.StatusCode, body)
	}
}

// TestPollOfAProcessThatStops: who waits is told to ask again, not that there is nothing.
func TestPollOfAProcessThatStops(t *testing.T) {
	s := newTable()
	ctx, stop := context.WithCancel(t.Context())
	srv := httptest.NewUnstartedServer(New(s, slog.New(slog.DiscardHandler)))
	srv.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	srv.Start()
	t.Cleanup(srv.Close)
	time.AfterFunc(50*time.Millisecond, stop)
	resp, body := do(t, http.MethodGet, srv.URL+Prefix+"m%2F1/calibrator?wait=40s",
		map[string]string{"If-None-Match": s.f.etag()}, nil)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "ask again") {
		t.Errorf("%d %q, Retry-After %q: want 503", resp.StatusCode, body, resp.Header.Get("Retry-After"))
	}
}

// TestManyFollow: long polls all end with one publication.
func TestManyFollow(t *testing.T) {
	s, url := serve(t)
	resp, _ := do(t, http.MethodGet, url+"/calibrator", nil, nil)
	tag := resp.Header.Get("ETag")
	const clients = 200
	var wg sync.WaitGroup
	var asked atomic.Int64
	codes := make(chan int, clients)
	for range clients {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/calibrator?wait=40s", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("If-None-Match", tag)
			asked.Add(1)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			codes <- resp.StatusCode
		})
	}
	// Some come before, some after: all must have the news.
	eventually.True(t, "half of the clients ask", func() bool { return asked.Load() >= clients/2 })
	s.publish(temperature(t, 3))
	wg.Wait()
	close(codes)
	for code := range codes {
		if code != 200 {
			t.Fatalf("status %d, want 200", code)
		}
	}
}

func TestCalibrateJSON(t *testing.T) {
	s, url := serve(t)
	s.publish(temperature(t, 2))
	header := map[string]string{"Content-Type": "application/json; charset=utf-8"}
	for _, c := range []struct{ body, want string }{
		{`{"logits":[[0,0],[2,0]]}`, fmt.Sprintf("[[0.5,0.5],[%v,%v]]", 1/(1+math.Exp(-1)), 1/(1+math.Exp(1)))},
		{`{"probabilities":[[0.5,0.5]]}`, "[[0.5,0.5]]"},
		{`{"logits":[]}`, "[]"},
		{`{"Logits":[[0,0]],"ids":["null"]}`, "[[0.5,0.5]]"},
	} {
		resp, body := do(t, http.MethodPost, url+"/calibrate", header, []byte(c.body))
		var got, want answer
		if err := json.Unmarshal(body, &got); err != nil || resp.StatusCode != 200 || got.Revision != 1 ||
			resp.Header.Get("Plumbline-Revision") != "1" {
			t.Fatalf("%s: %d %s %v", c.body, resp.StatusCode, body, err)
		}
		if err := json.Unmarshal([]byte(c.want), &want.Probabilities); err != nil {
			t.Fatal(err)
		}
		for i, row := range want.Probabilities {
			for j, p := range row {
				if math.Abs(got.Probabilities[i][j]-p) > 1e-15 {
					t.Errorf("%s: row %d %v, want %v", c.body, i, got.Probabilities[i], row)
				}
			}
		}
		if len(got.Probabilities) != len(want.Probabilities) {
			t.Errorf("%s: %d rows, want %d", c.body, len(got.Probabilities), len(want.Probabilities))
		}
	}
}

// TestCalibrateZero: a probability of 0, or too small for float32, is what it is in the stream: 2⁻¹⁴⁹.
func TestCalibrateZero(t *testing.T) {
	s, url := serve(t)
	s.publish(temperature(t, 20))
	want := math.Exp(math.Log(math.SmallestNonzeroFloat32) / 20)
	for _, small := range []string{"0", "1e-60"} {
		var got answer
		_, body := do(t, http.MethodPost, url+"/calibrate", map[string]string{"Content-Type": "application/json"},
			[]byte(`{"probabilities":[[1,`+small+`]]}`))
		if err := json.Unmarshal(body, &got); err != nil || math.Abs(got.Probabilities[0][1]-want/(1+want)) > 1e-12 {
			t.Errorf("%s: got %s, want %v", small, body, want/(1+want))
		}
	}
}

// TestCalibrateArrow: the message that goes to the logits topic comes back as it would stand on the calibrated topic.
func TestCalibrateArrow(t *testing.T) {
	s, url := serve(t)
	s.publish(temperature(t, 2))
	message := func(model string) []byte {
		b, err := arrowio.EncodePredictions(arrowio.Columns{Model: model, Version: "7", IDs: []string{"a", "b"},
			TS: []int64{1, 2}, K: 2, Logits: []float32{0, 0, 2, 0}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	header := map[string]string{"Content-Type": typeArrow}
	resp, body := do(t, http.MethodPost, url+"/calibrate?version=7", header, message("m/1"))
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != typeArrow {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	r, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal("no record batch in the answer")
	}
	at := r.Schema().FieldIndices("probs")
	got := r.Record().Column(at[0]).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
	for i, want := range []float64{0.5, 0.5, 1 / (1 + math.Exp(-1)), 1 / (1 + math.Exp(1))} {
		if math.Abs(float64(got[i])-want) > 1e-6 {
			t.Errorf("probability %d is %g, want %g", i, got[i], want)
		}
	}
	if md := r.Schema().Metadata(); md.FindKey(arrowio.MetaCorrection) >= 0 {
		t.Errorf("metadata %v of rows that nothing corrects", md)
	}
	s.correct(calibrator.Correction{TopCorrection: calibrator.TopCorrection{Slope: .5, Intercept: .25}},
		time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
	_, body = do(t, http.MethodPost, url+"/calibrate", header, message("m/1"))
	again, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	md := again.Schema().Metadata()
	const named = `[{"model":"m/1","version":"7","revision":1,"effective_from":"2026-01-01T00:01:00Z",` +
		`"correction":{"slope":0.5,"intercept":0.25}}]`
	if got, _ := md.GetValue(arrowio.MetaCorrection); got != named {
		t.Errorf("the correction is named %s, want %s", got, named)
	}
	if resp, body = do(t, http.MethodPost, url+"/calibrate", header, message("other")); resp.StatusCode != 400 ||
		!strings.Contains(string(body), `\"other\"`) {
		t.Errorf("another model's rows: %d %s", resp.StatusCode, body)
	}
}

// TestOtherClasses: a calibrator that fits any K does not let rows of another model through.
func TestOtherClasses(t *testing.T) {
	s, url := serve(t)
	arrow, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m/1", Version: "7", IDs: []string{"a"},
		TS: []int64{1}, K: 2, Logits: []float32{2, 0}})
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{typeJSON: `{"logits":[[2,0]]}`, typeArrow: string(arrow)}
	for _, c := range []calibrator.Calibrator{calibrator.Identity{}, temperature(t, 2)} {
		s.publish(c)
		for kind, body := range bodies {
			for classes, want := range map[int]int{0: 200, 2: 200, 3: 400} {
				s.classes = classes
				resp, got := do(t, http.MethodPost, url+"/calibrate", map[string]string{"Content-Type": kind},
					[]byte(body))
				if resp.StatusCode != want {
					t.Errorf("%s, %s, K of the model %d: %d %s, want %d", c.Method(), kind, classes, resp.StatusCode,
						got, want)
				}
				const why = `rows of 2 classes; allowed are the 3 of model \"m/1\", version \"7\"`
				if want == 400 && !strings.Contains(string(got), why) {
					t.Errorf("%s, %s: %s, want %s", c.Method(), kind, got, why)
				}
			}
		}
	}
}

func TestRefused(t *testing.T) {
	s, url := serve(t)
	rows := calibrator.NewData([]float64{1, 2, 3, 3, 2, 1, 1, 3, 2}, 3, []int32{2, 0, 1}, nil)
	three, _, err := calibrator.Fit("vector", rows, calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(three)
	for _, c := range []struct {
		method, path, kind, body string
		code                     int
		want                     string
	}{
		{"GET", "/calibrate", "", "", 405, "POST"},
		{"POST", "/calibrator", "", "", 405, "GET or HEAD"},
		{"GET", "/other", "", "", 404, "no such path"},
		{"GET", "/calibrator?version=8", "", "", 404, `no model`},
		{"GET", "/calibrator?wait=51s", "", "", 400, "0s to 50s"},
		{"GET", "/calibrator?x=1", "", "", 400, "version, wait"},
		{"GET", "/calibrator?version=7&version=7", "", "", 400, "2 times"},
		{"POST", "/calibrate", "text/plain", "{}", 415, typeArrow},
		{"POST", "/calibrate", typeJSON, "{", 400, "body"},
		{"POST", "/calibrate", typeJSON, "", 400, "body: empty"},
		{"POST", "/calibrate", typeJSON, "{}", 400, "exactly one"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3],[1,"x",3]]}`, 400,
			"body: logits: string at byte 25, must be"},
		{"POST", "/calibrate", typeJSON, `{"logits": [[1, 1e400]]}`, 400,
			"body: logits: number 1e400 at byte 21, must be at most 1.7976931348623157e+308 in size"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3],[1,null,3]]}`, 400,
			"logits: row 1, class 1: null, must be a number"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3],null]}`, 400, "row 1 has 0 values"},
		{"POST", "/calibrate", typeJSON, `{"probabilities":[[1,0,null]],"ids":["null"]}`, 400,
			"probabilities: row 0, class 2: null"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3]],"probabilities":[[1,0,0]]}`, 400, "exactly one"},
		{"POST", "/calibrate", typeJSON, `{"logit":[[1,2,3]]}`, 400, "logit"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3]]} {}`, 400, "more than one"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2]]}`, 400, "allowed are the 3"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1]]}`, 400, "row 0 has 1 values"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,3],[1,2]]}`, 400, "row 1 has 2 values, row 0 has 3"},
		{"POST", "/calibrate", typeJSON, `{"logits":[[1,2,1e999]]}`, 400, "body"},
		{"POST", "/calibrate", typeJSON, `{"probabilities":[[1,2,3]]}`, 400, "row 0 gives no probabilities"},
		{"POST", "/calibrate", typeJSON, strings.Repeat(" ", MaxBody+1), 413, fmt.Sprint(MaxBody)},
		{"POST", "/calibrate", typeArrow, "not arrow", 400, "error"},
	} {
		resp, body := do(t, c.method, url+c.path, map[string]string{"Content-Type": c.kind}, []byte(c.body))
		if resp.StatusCode != c.code || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s %.40s: %d %s; want %d, with %q", c.method, c.path, c.body, resp.StatusCode, body, c.code,
				c.want)
		}
	}
}

// TestTooManyPolls: those above the bound are answered at once.
func TestTooManyPolls(t *testing.T) {
	s := newTable()
	h := New(s, slog.New(slog.DiscardHandler))
	for range MaxWaiting {
		h.waiting <- struct{}{}
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"m%2F1/calibrator?wait=40s", nil)
	req.Header.Set("If-None-Match", s.f.etag())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusNotModified || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}
