package control_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/control"
)

// TestCheck: a process is ready or healthy when it says so. One that asks for TLS or a password answers, so it is
// healthy: the health check of an image knows of neither.
func TestCheck(t *testing.T) {
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	encrypted := httptest.NewTLSServer(answer(http.StatusOK))
	defer encrypted.Close()
	client, err := control.New("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		status         int // 0: a server that speaks TLS only
		ready, healthy bool
	}{
		{"it says yes", http.StatusOK, true, true},
		{"it says no", http.StatusServiceUnavailable, false, false},
		{"it fails", http.StatusInternalServerError, false, false},
		{"it is none of ours", http.StatusNotFound, false, false},
		{"it asks for a password", http.StatusUnauthorized, false, true},
		{"it asks for TLS", 0, false, true},
	} {
		base := strings.Replace(encrypted.URL, "https:", "http:", 1)
		if c.status != 0 {
			srv := httptest.NewServer(answer(c.status))
			defer srv.Close()
			base = srv.URL
		}
		for path, want := range map[string]bool{"ready": c.ready, control.Healthy: c.healthy} {
			if err := client.Check(t.Context(), base, path); (err == nil) != want {
				t.Errorf("%s: %s: %v, want %v", c.name, path, err, want)
			}
		}
	}
}
