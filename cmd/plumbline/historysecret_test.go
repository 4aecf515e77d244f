package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/sinks/registry"
)

// TestNoSecretOfTheDatabaseIsShown: the address of a PostgreSQL that is not there has a password, which neither the
// log nor an answer nor a command shows, whichever way the address is written and wherever it comes from.
func TestNoSecretOfTheDatabaseIsShown(t *testing.T) {
	brokers := kafkatest.Start(t)
	run(t, "topics", "create", "-c", brokerConfig(t, brokers, ""))
	for _, dsn := range []string{"postgres://plumbline:" + url.QueryEscape(planted) + "@127.0.0.1:1/history",
		"host=127.0.0.1 port=1 user=plumbline dbname=history password=" + planted,
		"postgres://plumbline:" + url.QueryEscape(planted) + "@[bad/history"} {
		t.Setenv("PLUMBLINE_TEST_DSN", dsn)
		for _, source := range []registry.Config{{DSNEnv: "PLUMBLINE_TEST_DSN"},
			{DSNFile: writeFile(t, "dsn", dsn+"\n")}} {
			cfg := config.Default()
			source.Store, source.Timeout = registry.Postgres, time.Second
			cfg.Kafka.Brokers, cfg.History, cfg.Checkpoints.Dir, cfg.HTTP.Listen = brokers, source, t.TempDir(),
				freeAddress(t)
			shown := runWithDatabase(t, cfg)
			if !strings.Contains(shown, "history") {
				t.Errorf("%.20s…: nothing is said of the history: %s", dsn, shown)
			}
			mustNotShow(t, "the run", shown)
		}
		conf := writeFile(t, "plumbline.yaml", "history: {store: postgres, dsn_env: PLUMBLINE_TEST_DSN, timeout: 1s}\n")
		for _, args := range [][]string{{"history", "m", "--database", "-c", conf, "--log-level", "debug"},
			{"config", "check", "--json", conf}} {
			_, out, stderr := runCommand(t, args...)
			mustNotShow(t, strings.Join(args, " "), out+stderr)
		}
	}
}

// runWithDatabase runs the pipeline until the history has said how it does, and returns the log, the answers and the
// error.
func runWithDatabase(t *testing.T, cfg config.Config) string {
	t.Helper()
	var logged syncBuffer
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() {
		err := rt.Run(ctx, engine.Stages{Shards: true, Models: true})
		done <- err
		done <- err
	}()
	defer func() { cancel(); <-done }()
	ended := false
	var failed error
	eventually.Get(t, "something about the history in the log", func() (string, bool) {
		select {
		case failed = <-done: // an address that cannot be read ends the start
			ended = true
		default:
		}
		text := logged.String()
		return text, ended || strings.Contains(text, "the database is behind")
	})
	if ended {
		if failed == nil {
			t.Fatal("the run ended without an error")
		}
		return logged.String() + failed.Error()
	}
	var answers strings.Builder
	for _, path := range []string{"/api/v1/models/m/history", "/api/v1/status", "/metrics"} {
		resp, err := http.Get("http://" + cfg.HTTP.Listen + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&answers, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	return logged.String() + answers.String()
}
