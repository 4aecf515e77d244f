package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// planted is a password that nothing else contains.
const planted = "Tr0ub4dor&3/xyzzy"

// forms are the ways in which it could be written.
func forms() []string {
	return []string{planted, url.QueryEscape(planted), strings.ReplaceAll(planted, "&", `\u0026`),
		hex.EncodeToString([]byte(planted)),
		base64.StdEncoding.EncodeToString([]byte(planted)),
		base64.StdEncoding.EncodeToString([]byte("\x00plumbline\x00" + planted))[8:]}
}

func mustNotShow(t *testing.T, what, text string) {
	t.Helper()
	for _, f := range forms() {
		if strings.Contains(text, f) {
			t.Errorf("%s shows the password, as %q: %.400s", what, f, text)
		}
	}
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestNoSecretIsShown plants a password where the process reads it, lets commands succeed and fail with it, and looks
// for it in everything that comes out: output, errors, the log at its most talkative, every answer of HTTP.
func TestNoSecretIsShown(t *testing.T) {
	testsize.Slow(t)
	t.Setenv("PLUMBLINE_TEST_PASSWORD", planted)
	file := writeFile(t, "password", planted+"\n")
	sources := map[string]string{"env": "password_env: PLUMBLINE_TEST_PASSWORD", "file": "password_file: " + file}
	for accepted, stored := range map[string]string{"accepted": planted, "refused": "another"} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
			kfake.Superuser("PLAIN", "plumbline", stored),
			kfake.Superuser("SCRAM-SHA-512", "plumbline", stored))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		for from, source := range sources {
			for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-512"} {
				conf := brokerConfig(t, cluster.ListenAddrs(),
					"  sasl: {mechanism: "+mechanism+", username: plumbline, "+source+"}\n")
				for _, args := range [][]string{{"topics", "create", "-c", conf}, {"config", "check", "--json", conf},
					{"config", "check", conf}, {"topics", "create", "--json", "-c", conf}} {
					_, out, stderr := runCommand(t, append(args, "--log-level", "debug")...)
					mustNotShow(t, strings.Join([]string{accepted, from, mechanism, args[0], args[1]}, " "), out+stderr)
				}
			}
		}
		if accepted == "accepted" {
			cfg := config.Default()
			cfg.Kafka.Brokers, cfg.Kafka.SASL = cluster.ListenAddrs(),
				kafkaio.SASL{Mechanism: "PLAIN", Username: "plumbline", PasswordFile: file}
			showEverything(t, cfg)
		}
	}
}

// showEverything runs the pipeline and asks for all that it serves.
func showEverything(t *testing.T, cfg config.Config) {
	t.Helper()
	var logged syncBuffer
	cfg.Checkpoints.Dir, cfg.HTTP.Pprof, cfg.HTTP.Control = t.TempDir(), true, true
	cfg.HTTP.Listen = freeAddress(t)
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	stop := startEngine(t, rt)
	eventually.Get(t, "ready", func() (error, bool) { err := rt.Ready(); return err, err == nil })
	asked := 0
	for _, path := range []string{"/", "/metrics", "/-/ready", "/-/healthy", "/api/v1/status", "/api/v1/series",
		"/api/v1/alerts", "/api/v1/calibrators", "/api/v1/none",
		"/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1"} {
		resp, err := http.Get("http://" + cfg.HTTP.Listen + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			asked++
		}
		mustNotShow(t, path, string(body))
	}
	stop()
	if asked < 8 || !strings.Contains(logged.String(), "serving") {
		t.Errorf("only %d paths answered; log:\n%s", asked, logged.String())
	}
	mustNotShow(t, "the log", logged.String())
}

// TestWrongPlaceForASecret: who writes the password into the YAML is told that the key is unknown, without the value.
func TestWrongPlaceForASecret(t *testing.T) {
	for _, line := range []string{"  sasl: {username: plumbline, password: \"" + planted + "\"}\n",
		"  sasl:\n    username: plumbline\n    password: \"" + planted + "\"\n"} {
		conf := brokerConfig(t, []string{"127.0.0.1:1"}, line)
		for _, args := range [][]string{{"config", "check", conf}, {"config", "check", "--json", conf},
			{"run", "-c", conf}} {
			code, out, stderr := runCommand(t, args...)
			if code != exitUsage || !strings.Contains(out+stderr, "password") {
				t.Errorf("got exit code %d, %q, want %d and the key", code, out+stderr, exitUsage)
			}
			mustNotShow(t, strings.Join(args, " "), out+stderr)
		}
	}
}

// TestNoPasswordInAnAddress: answers and errors of commands name the address, so it may have none.
func TestNoPasswordInAnAddress(t *testing.T) {
	conf := brokerConfig(t, []string{"127.0.0.1:1"}, "")
	for _, scheme := range []string{"http://", "https://", ""} {
		address := scheme + "ann:" + url.QueryEscape(planted) + "@127.0.0.1:1"
		for _, args := range [][]string{{"pause", "--why", "x"}, {"health"}, {"models", "list"}, {"history", "m"},
			{"doctor", "-c", conf}} {
			code, out, stderr := runCommand(t, append(args, "--url", address)...)
			if code == exitDone || !strings.Contains(out+stderr, "--password-file") {
				t.Errorf("%s %s: exit code %d, %.200s", args[0], scheme, code, out+stderr)
			}
			mustNotShow(t, args[0], out+stderr)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func startEngine(t *testing.T, rt *engine.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true}) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}
