package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/sinks/history"
)

type recorded struct{ calls []string }

func (r *recorded) Pause(by, why string) any {
	r.calls = append(r.calls, "pause "+by+": "+why)
	return map[string]bool{"ok": true}
}

func (r *recorded) Resume() any {
	r.calls = append(r.calls, "resume")
	return map[string]bool{"ok": true}
}

func TestControl(t *testing.T) {
	rec := &recorded{}
	on := New(Deps{History: history.New(history.Config{}), Control: rec})
	off := New(Deps{History: history.New(history.Config{})})
	f := func(h http.Handler, method, target string, code int, body, call string, header ...string) {
		t.Helper()
		rec.calls = nil
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != code || !strings.Contains(w.Body.String(), body) || strings.Join(rec.calls, ",") != call {
			t.Errorf("%s %s: %d %s, calls %q; want %d with %q, %q", method, target, w.Code, w.Body, rec.calls, code,
				body, call)
		}
	}
	f(on, "POST", "/api/v1/pause?by=ann&why=disk", 200, `"ok":true`, "pause ann: disk")
	f(on, "POST", "/api/v1/pause?why=disk", 200, `"ok":true`, "pause 192.0.2.1: disk")
	f(on, "POST", "/api/v1/pause?by=eve&why=x", 200, `"ok":true`, "pause eve: x", "Authorization",
		"Basic Ym9iOnNlY3JldA==")
	f(on, "POST", "/api/v1/pause?by=ann", 400, `parameter \"why\" is required`, "")
	f(on, "POST", "/api/v1/pause?why=+", 400, `parameter \"why\" is required`, "")
	f(on, "POST", "/api/v1/resume", 200, `"ok":true`, "resume")
	f(on, "GET", "/api/v1/pause", 405, "POST", "")
	f(on, "POST", "/api/v1/status", 405, "GET or HEAD", "")
	f(on, "POST", "/api/v1/pause?who=ann", 400, "unknown parameter", "")
	f(on, "POST", "/api/v1/pause?why="+strings.Repeat("x", 201), 400, "at most 200", "")
	f(on, "POST", "/api/v1/pause?why=%ff", 400, "UTF-8", "")
	f(on, "POST", "/api/v1/pause", 403, "cross-origin", "", "Sec-Fetch-Site", "cross-site")
	f(on, "POST", "/api/v1/pause", 403, "cross-origin", "", "Origin", "https://elsewhere.example")
	f(off, "POST", "/api/v1/pause", 403, "http.control", "")
}
