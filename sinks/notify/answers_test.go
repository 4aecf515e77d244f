package notify

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/setting"
)

// TestHostileAnswers: a receiver whose answer has no end, comes byte by byte or never, costs no more than the timeout
// and some bytes.
func TestHostileAnswers(t *testing.T) {
	const timeout = 300 * time.Millisecond
	block := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		taken  bool
	}{
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(block)); err != nil {
					return
				}
			}
		}, true},
		"byte by byte": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		}, false},
		"never": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false},
		"headers": {func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				w.Header().Add("X-Long", block)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client has gone
				c.answer(w, r)
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			n := New(Options{Config: setting.Default[Config](), Client: srv.Client()}, &Counts{})
			if !c.taken { // what is taken ends long before the default, on a busy machine too
				n.cfg.Timeout = timeout
			}
			at := time.Now()
			err := n.cfg.post(t.Context(), srv.URL, []byte("{}"), nil)
			took := time.Since(at)
			if (err == nil) != c.taken || took > timeout+5*time.Second {
				t.Errorf("%v after %v, want taken: %t", err, took, c.taken)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestRetryAfter: a receiver that says when it takes more is not asked before, nor later than its patience lasts.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		after       string
		least, most time.Duration
	}{
		{"3", 3 * time.Second, 4 * time.Second},
		{"3600", 4 * time.Second, 5 * time.Second},
		{time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), time.Second, 2 * time.Second},
		{"soon", time.Second, 2 * time.Second},
	} {
		t.Run(c.after, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var asked []time.Time
			hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if asked = append(asked, time.Now()); len(asked) == 1 {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(http.StatusTooManyRequests)
				}
			}))
			defer hook.Close()
			topic := newTopic()
			topic.alert(t, "a", firing)
			_, committed, stop := running(t, Options{Config: Config{RetryFor: 4500 * time.Millisecond},
				Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
			eventually.True(t, "taken", func() bool { return committed() == 1 })
			stop()
			mu.Lock()
			defer mu.Unlock()
			if len(asked) != 2 {
				t.Fatalf("%d requests, want 2", len(asked))
			}
			if pause := asked[1].Sub(asked[0]); pause < c.least || pause > c.most {
				t.Errorf("asked again after %v, want %v to %v", pause, c.least, c.most)
			}
		})
	}
}
