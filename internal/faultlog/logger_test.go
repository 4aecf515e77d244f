package faultlog_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/plumbline/plumbline/internal/faultlog"
)

// TestErrorsOfAServer: those who speak something else than TLS to a port with TLS cause one line in the format of the
// log, not one each in another.
func TestErrorsOfAServer(t *testing.T) {
	var out bytes.Buffer
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = faultlog.Logger(slog.New(faultlog.New(slog.NewJSONHandler(&out, nil))), "http server")
	s.StartTLS()
	for range 20 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "no TLS, and no HTTP\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	s.Close()
	var line struct{ Level, Msg, Err string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "WARN" || line.Msg != "http server" ||
		line.Err == "" {
		t.Errorf("want one line of JSON (%v): %s", err, out.Bytes())
	}
}
