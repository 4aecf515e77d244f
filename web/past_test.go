package web

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/sinks/history"
)

// archivist remembers what it was asked.
type archivist struct {
	asked []string
	err   error
}

func (a *archivist) Past(_ context.Context, q PastQuery) (any, error) {
	show := func(t *int64) string {
		if t == nil {
			return "-"
		}
		return fmt.Sprint(*t)
	}
	a.asked = append(a.asked, fmt.Sprintf("%s|%s|%s|%s|%s|%d|%s|%v", q.Model, q.Version, strings.Join(q.Kinds, "+"),
		show(q.Since), show(q.Until), q.Limit, q.Cursor, q.Records))
	return map[string]any{"entries": []string{}, "behind": 0}, a.err
}

func TestHistoryOfAModel(t *testing.T) {
	h := history.New(history.Config{})
	calibrate := newHandler(Deps{History: h}, 0)
	for _, c := range []struct {
		method, target string
		err            error
		code           int
		body, asked    string
	}{
		{"GET", "m/history", nil, 200, `"entries":[]`, "m||" + "|-|-|100||true"},
		{"GET", "a%2Fb/history?version=1&kind=alert,calibrator&since=1970-01-01T00:00:01Z" +
			"&until=1970-01-01T00:00:02Z&limit=7&cursor=1.2.a&detail=none", nil, 200, "entries",
			"a/b|1|alert+calibrator|1000000000|2000000000|7|1.2.a|false"},
		{"HEAD", "m/history", nil, 200, "", "m|||-|-|100||true"},
		{"GET", "m/history?since=0001-01-01T00:00:00Z&until=9999-12-31T00:00:00Z", nil, 200, "entries",
			"m|||-9223372036854775808|9223372036854775807|100||true"},
		{"GET", "m/history?kind=none", nil, 400, `kind \"none\": must be some of calibrator, alert`, ""},
		{"GET", "m/history?limit=0", nil, 400, "from 1 to 10000", ""},
		{"GET", "m/history?since=noon", nil, 400, "since", ""},
		{"GET", "m/history?detail=some", nil, 400, "full, none", ""},
		{"GET", "m/history?model=x", nil, 400, "unknown parameter", ""},
		{"GET", "m/history?cursor=x", fmt.Errorf("%w: cursor", ErrQuery), 400, "cursor", "m|||-|-|100|x|true"},
		{"GET", "m/history", errors.New("user postgres, password hunter2"), 503, "does not answer",
			"m|||-|-|100||true"},
		{"POST", "m/history", nil, 405, "GET or HEAD", ""},
		{"DELETE", "m/history", nil, 405, "GET or HEAD", ""},
	} {
		a := &archivist{err: c.err}
		on := New(Deps{History: h, Past: a, Calibrate: calibrate})
		w := httptest.NewRecorder()
		on.ServeHTTP(w, httptest.NewRequest(c.method, "/api/v1/models/"+c.target, nil))
		if asked := strings.Join(a.asked, " "); w.Code != c.code || !strings.Contains(w.Body.String(), c.body) ||
			asked != c.asked || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s %s: %d %s, asked %q; want %d with %q, %q", c.method, c.target, w.Code, w.Body, asked, c.code,
				c.body, c.asked)
		}
	}
	w := httptest.NewRecorder()
	New(Deps{History: h}).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/models/m/history", nil))
	if w.Code != 404 || !strings.Contains(w.Body.String(), "history.store is off") {
		t.Errorf("without a history: %d %s", w.Code, w.Body)
	}
}
