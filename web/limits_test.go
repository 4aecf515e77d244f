package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/sinks/history"
)

// limited serves with the limits of Server, the times cut short where short is set, and returns the address.
func limited(t *testing.T, short time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server("", testHandler(history.New(history.Config{})), quiet)
	for name, d := range map[string]time.Duration{"ReadHeaderTimeout": s.ReadHeaderTimeout,
		"ReadTimeout": s.ReadTimeout, "WriteTimeout": s.WriteTimeout, "IdleTimeout": s.IdleTimeout} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("%s is %v, want a bound of at most two minutes", name, d)
		}
	}
	if short > 0 {
		s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = short, short, short
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

// TestLargeRequestsAreRefused: headers, cookies and addresses beyond the limit get no answer of the API.
func TestLargeRequestsAreRefused(t *testing.T) {
	address := limited(t, 0)
	long := strings.Repeat("x", 128<<10)
	for name, request := range map[string]string{
		"header":  "GET /api/v1/status HTTP/1.1\r\nHost: a\r\nX-Long: " + long + "\r\n\r\n",
		"address": "GET /api/v1/status?q=" + long + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"many": "GET /api/v1/status HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-A: "+long[:1000]+"\r\n", 200) +
			"\r\n",
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, request) }() // the server may hang up in between
		first := make([]byte, 12)
		n, _ := io.ReadFull(c, first)
		if got := string(first[:n]); got != "HTTP/1.1 431" && got != "" {
			t.Errorf("%s of %d bytes: got %q, want 431", name, len(request), got)
		}
		_ = c.Close()
	}
}

// TestSlowRequestsAreCut: who sends half a request, or a body byte by byte, is hung up on.
func TestSlowRequestsAreCut(t *testing.T) {
	address := limited(t, 50*time.Millisecond)
	for name, request := range map[string]string{
		"nothing":       "",
		"half a header": "GET /api/v1/status HTTP/1.1\r\nHost: a\r\nX-",
		"half a body":   "POST /api/v1/pause HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc",
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		// It ends because the server closes the connection; without limits this waits for ever.
		answer, _ := io.ReadAll(c)
		if strings.Contains(string(answer), " 200 ") {
			t.Errorf("%s: got %q", name, answer)
		}
		_ = c.Close()
	}
}

// TestBodiesAreNotTaken: requests that change nothing have no body, and those that do are not read where they are
// refused.
func TestBodiesAreNotTaken(t *testing.T) {
	address := limited(t, 0)
	for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/pause"} {
		body := &counting{}
		resp, err := http.Post("http://"+address+path, "application/octet-stream", body)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("POST %s of 64 MiB: got %s", path, resp.Status)
			}
		}
		if n := body.read.Load(); n > bodySize/2 {
			t.Errorf("POST %s: %d bytes of the body were taken", path, n)
		}
	}
}

const bodySize = 64 << 20

// counting is a body of zeros that knows how much of it was read.
type counting struct{ read atomic.Int64 }

func (c *counting) Read(p []byte) (int, error) {
	n := min(int64(len(p)), bodySize-c.read.Load())
	if n == 0 {
		return 0, io.EOF
	}
	c.read.Add(n)
	return int(n), nil
}
