package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestKnownHosts: a page of another site that makes its name our address gets nothing.
func TestKnownHosts(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "a.localhost": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200,
		"10.1.2.3": 200, "plumbline.example:443": 200, "Plumbline.Example.": 200,
		"evil.example": 421, "evil.example:8080": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421,
		"plumbline.example.evil.example": 421, "": 421, "0x7f.1": 421, "*": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.Host = host
		w := httptest.NewRecorder()
		KnownHosts(served, "plumbline.example").ServeHTTP(w, r)
		if w.Code != want || (w.Code == 200) != strings.Contains(w.Body.String(), "secret") {
			t.Errorf("host %q: %d %s, want %d", host, w.Code, w.Body, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://any.example/", nil)
	w := httptest.NewRecorder()
	if KnownHosts(served, "*").ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("every name is allowed: %d", w.Code)
	}
}
