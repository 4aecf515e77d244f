package faultlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	to := slog.New(faultlog.New(slog.NewJSONHandler(&out, nil)))
	s.Config.ErrorLog = slog.NewLogLogger(faultlog.Lines(to, "http server"), slog.LevelWarn)
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

// TestAddressesAreNoOtherFault: who knocks from many addresses causes one line.
func TestAddressesAreNoOtherFault(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(faultlog.New(slog.NewTextHandler(&out, nil)))
	for _, from := range []string{"[2001:db8::1]:80", "[2001:db8::a:b1f]:4242", "[fe80::1%eth0]:1", "[::1]:9"} {
		log.Warn("http server", faultlog.Err(errors.New("http: TLS handshake error from "+from+": EOF")))
	}
	log.Warn("http server", faultlog.Err(errors.New("[a] other: EOF")))
	log.Warn("http server", faultlog.Err(errors.New("[b] other: EOF")))
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines, &out)
	}
}
