package reply_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plumbline/plumbline/web/reply"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(w http.ResponseWriter)
		code  int
		body  string
		cache string
	}{
		{"a value", func(w http.ResponseWriter) { _ = reply.JSON(w, 201, []int{1}) }, 201, "[1]\n", "no-store"},
		{"a value to keep", func(w http.ResponseWriter) {
			w.Header().Set("Cache-Control", "no-cache")
			_ = reply.JSON(w, 200, []int{1})
		}, 200, "[1]\n", "no-cache"},
		{"no value of JSON", func(w http.ResponseWriter) {
			w.Header().Set("Cache-Control", "no-cache")
			if reply.JSON(w, 200, math.NaN()) == nil {
				t.Error("NaN was encoded")
			}
		}, 500, `{"error":"encode reply: json: unsupported value: NaN"}` + "\n", "no-store"},
		{"an error", func(w http.ResponseWriter) { reply.Error(w, 409, `"`) }, 409, `{"error":"\""}` + "\n",
			"no-store"},
	} {
		w := httptest.NewRecorder()
		c.do(w)
		if w.Code != c.code || w.Body.String() != c.body || w.Header().Get("Cache-Control") != c.cache ||
			w.Header().Get("Content-Type") != reply.Type {
			t.Errorf("%s: %d %q %v, want %d %q, Cache-Control %s", c.name, w.Code, w.Body, w.Header(), c.code, c.body,
				c.cache)
		}
	}
}

func TestAllows(t *testing.T) {
	w := httptest.NewRecorder()
	if !reply.Allows(w, httptest.NewRequest("HEAD", "/", nil), "GET", "HEAD") || w.Body.Len() > 0 {
		t.Errorf("HEAD is refused: %q", w.Body)
	}
	if reply.Allows(w, httptest.NewRequest("PUT", "/", nil), "GET", "HEAD") || w.Code != 405 ||
		w.Header().Get("Allow") != "GET, HEAD" ||
		w.Body.String() != `{"error":"method PUT is not allowed here: GET or HEAD"}`+"\n" {
		t.Errorf("PUT: %d %q %v", w.Code, w.Body, w.Header())
	}
}
