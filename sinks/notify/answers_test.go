package notify

import (
	"fmt"
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

// TestRetryAfter: a receiver that says when it takes more is asked then, even where that is later than its patience
// lasts.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		after       string
		least, most time.Duration
	}{
		{"3", 3 * time.Second, 4 * time.Second},
		{"6", 6 * time.Second, 7 * time.Second},
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

// TestRetryAfterOfTheNext: what a receiver asked when it refused a change holds for the changes after it.
func TestRetryAfterOfTheNext(t *testing.T) {
	var mu sync.Mutex
	var asked []time.Time
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, time.Now()); len(asked) < 4 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer hook.Close()
	topic := newTopic()
	topic.alert(t, "a", firing)
	topic.alert(t, "b", firing)
	counts, committed, _ := running(t, Options{Config: Config{RetryFor: time.Millisecond},
		Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
	eventually.True(t, "both are decided", func() bool { return committed() == 2 })
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(asked); i++ {
		if pause := asked[i].Sub(asked[i-1]); pause < 2*time.Second {
			t.Errorf("request %d came %v after the one before, want 2 s", i, pause)
		}
	}
	if o := outcomesOf(counts, "webhook"); len(asked) != 4 || o.OK != 1 || o.GivenUp != 1 {
		t.Errorf("%d requests, %+v; want the first given up after two, the second taken by its second", len(asked), o)
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "-1": 0, "1.5": 0, "7": 7 * time.Second,
		"3600": time.Hour, "2147483648": time.Hour, "99999999999999999999999": time.Hour,
		"Mon, 01 Jan 9999 00:00:00 GMT": time.Hour} {
		if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestReceiverFarBehind: a receiver that takes nothing is not asked about what is long past, so that little is told
// again to the others after a restart; it is asked again about what is new.
func TestReceiverFarBehind(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer hook.Close()
	topic := newTopic()
	const all = 3 * mostBehind
	for i := range all {
		topic.alert(t, fmt.Sprint(i), firing)
	}
	counts, committed, _ := running(t, Options{Config: Config{RetryFor: time.Millisecond},
		Hooks: []Webhook{{URL: hook.URL}}}, topic, 0)
	eventually.True(t, "all are decided", func() bool { return committed() == all })
	mu.Lock()
	defer mu.Unlock()
	if o := outcomesOf(counts, "webhook"); o.GivenUp != all || asked > all*2/3 || asked < mostBehind {
		t.Errorf("%d of %d asked about, %+v", asked, all, o)
	}
}
