package web

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

var quiet = slog.DiscardHandler

// TestConnectionsAreBounded: whoever holds connections open keeps nobody out, with and without TLS. A connection with a
// request stays, and where all have one, no other comes in.
func TestConnectionsAreBounded(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"plain": (*httptest.Server).Start,
		"TLS":   (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			const most = 4
			held, release := make(chan struct{}), make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/held" {
					held <- struct{}{}
					<-release
				}
			}))
			s.Config = &http.Server{Handler: s.Config.Handler, ErrorLog: slog.NewLogLogger(quiet, slog.LevelWarn),
				ReadHeaderTimeout: Server("", nil, quiet).ReadHeaderTimeout}
			s.Listener = bounded(s.Listener, s.Config, most)
			start(s)
			defer s.Close()
			dial := func() net.Conn {
				t.Helper()
				c, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if name == "TLS" {
					trusted := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
					return tls.Client(c, &tls.Config{RootCAs: trusted, ServerName: "example.com"})
				}
				return c
			}
			ask := func(path string) (answered chan bool) {
				t.Helper()
				c, answered := dial(), make(chan bool, 1)
				go func() {
					_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: example.com\r\n\r\n")
					answered <- err == nil && answers(c)
				}()
				return answered
			}
			for range 3 * most { // some that have had an answer, and some that have said nothing
				if !<-ask("/") {
					t.Fatal("kept out by idle connections")
				}
				_ = dial()
			}
			var busy []chan bool
			for len(busy) < most {
				answered := ask("/held")
				select {
				case <-held:
					busy = append(busy, answered)
				case <-answered: // the server does not know yet that an answer has been read
				}
			}
			if <-ask("/") {
				t.Error("there are more connections than allowed")
			}
			close(release)
			for i, answered := range busy {
				if !<-answered {
					t.Errorf("connection %d was closed under its request", i)
				}
			}
			for !<-ask("/") { // as above
			}
		})
	}
}

// answers reads an answer.
func answers(c net.Conn) bool {
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}
