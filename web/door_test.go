package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/sinks/history"
)

// TestKnownHosts: a page of another site that makes its name our address gets nothing.
func TestKnownHosts(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "a.localhost": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200,
		"10.1.2.3": 200, "plumbline.example:443": 200, "Plumbline.Example.": 200,
		"evil.example": 421, "evil.example:8080": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421,
		"plumbline.example.evil.example": 421, "": 421, "0x7f.1": 421, "*": 421,
		"pod-0.models.ns.svc:8080": 200, "models.ns.svc": 421, ".models.ns.svc": 421, "evilmodels.ns.svc": 421,
		"models.ns.svc.evil.example": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.Host = host
		w := httptest.NewRecorder()
		KnownHosts(served, "plumbline.example", "*.models.ns.svc").ServeHTTP(w, r)
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

// TestCompressedBodiesAreRefused: nothing here inflates what a client sends.
func TestCompressedBodiesAreRefused(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 64<<20))
	_ = z.Close()
	taken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a body in gzip was taken") })
	h := New(Deps{History: history.New(history.Config{}), Calibrate: taken})
	for _, coding := range []string{"gzip", "br, gzip", "x\x1b[31m"} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/models/m/calibrate", bytes.NewReader(bomb.Bytes()))
		r.Header.Set("Content-Encoding", coding)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType ||
			!strings.Contains(w.Body.String(), "send it as it is") || strings.Contains(w.Body.String(), "\x1b") {
			t.Errorf("%q: %d %s", coding, w.Code, w.Body)
		}
	}
}

// TestAnswersInTurn: however many ask, few large answers are in memory; the others wait, and get 503 at last.
func TestAnswersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, refused atomic.Int64
		h := New(Deps{History: history.New(history.Config{}), Past: slowPast{&now, &most}})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/models/m/history", nil))
				if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "" {
					refused.Add(1)
				} else if w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		if most.Load() != maxPasts || refused.Load() == 0 || refused.Load() > 50-maxPasts {
			t.Errorf("%d answers at a time, want %d; %d refused", most.Load(), maxPasts, refused.Load())
		}
	})
}

// slowPast counts who waits for its answer.
type slowPast struct{ now, most *atomic.Int64 }

func (s slowPast) Past(context.Context, PastQuery) (any, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	time.Sleep(2 * time.Second)
	return []string{}, nil
}

// TestWebConfigIsBounded: what names the users is read for each order, so it is small or refused, and its text, with
// hashes of passwords, is in no error.
func TestWebConfigIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"good":   {"basic_auth_users: {ann: $2y$10$secret}\n", true},
		"nested": {"basic_auth_users: " + strings.Repeat("{secret: ", 5000) + "1" + strings.Repeat("}", 5000), false},
		"large":  {"# secret" + strings.Repeat("x", maxUsersFile), false},
		"binary": {"\x00secret\xff", false},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/api/v1/pause", nil)
		r.SetBasicAuth("ann", "x")
		began := time.Now()
		who, err := People{File: file, Loopback: true}.Who(r)
		if c.ok != (who == "ann" && err == nil) || time.Since(began) > 5*time.Second ||
			err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v in %v", name, who, err, time.Since(began))
		}
	}
}
