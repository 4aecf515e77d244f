package web

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plumbline/plumbline/sinks/history"
)

// TestClientsThatDoNotRead: those who ask for answers and take nothing of them hold up nobody else, however many they
// are. One who has read a part and waits for the rest gets it where there is room.
func TestClientsThatDoNotRead(t *testing.T) {
	was := stalled
	stalled = 100 * time.Millisecond
	defer func() { stalled = was }()
	large := bytes.Repeat([]byte("x"), 16<<20) // more than the buffers of a connection hold
	handler := New(Deps{History: history.New(history.Config{}), Metrics: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) })})
	s := httptest.NewUnstartedServer(handler)
	s.Config.WriteTimeout, s.Config.ConnContext = Server("", handler, quiet).WriteTimeout, boundSend
	s.Start()
	defer s.Close()
	defer s.CloseClientConnections()
	get := func(read bool) int {
		if !read {
			c, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 12)); err != nil { // it has its turn
				t.Fatal(err)
			}
			return 0
		}
		resp, err := http.Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			t.Errorf("a client that reads has %d bytes: %v", n, err)
		}
		return resp.StatusCode
	}
	for round := range 2 {
		for range maxScrapes {
			get(false)
		}
		began := time.Now()
		if code := get(true); code != http.StatusOK || time.Since(began) > turnPatience {
			t.Errorf("round %d: %d after %v, want 200 within %v", round, code, time.Since(began), turnPatience)
		}
	}
}
