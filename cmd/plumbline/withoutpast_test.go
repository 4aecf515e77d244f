package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	login "github.com/segmentio/kafka-go/sasl/plain"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestPastThatMayNotBeRead: without the right to read what it has published, a process says so and shows what its tasks
// remember of all models. Once it has the right, it shows the past too.
func TestPastThatMayNotBeRead(t *testing.T) {
	testsize.Slow(t)
	const models = 8 // so that each task has some
	file := guarded(t, "topic plumbline.l* Read,Write", "topic plumbline.panes Read,Write",
		"topic plumbline.snapshots Write", "topic plumbline.c* Read,Write", "topic plumbline.alerts Read,Write",
		"topic plumbline.decisions Read,Write", "topic plumbline.deadletter Write", "group plumbline* Read")
	rows := []string{"model,logits_0,logits_1,label"}
	for i := range 400 {
		rows = append(rows, fmt.Sprintf("m%d,0,1,%d", i%models, i%3&1))
	}
	run(t, "produce", writeFile(t, "rows.csv", strings.Join(rows, "\n")), "-c", file)
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg.HTTP.Listen, cfg.Group = "", "plumbline-own" // guarded has committed offsets of another group
	for _, again := range []bool{false, true} {
		var log syncBuffer
		rt := engine.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true}) }()
		eventually.Get(t, "the latest snapshots of all models are shown", func() (int, bool) {
			n := len(rt.History.Series())
			return n, n == models*len(cfg.Windows)
		})
		if again {
			eventually.Get(t, "the log says why there are no others", func() (string, bool) {
				text := log.String()
				return text, strings.Contains(text, "the page shows no snapshots of before this process")
			})
			mayRead(t, cfg, "plumbline.snapshots")
			eventually.Get(t, "the past is shown too", func() (int, bool) {
				n := rt.History.Totals().Snapshots
				return n, n > models*len(cfg.Windows)
			})
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// mayRead gives user app the right to read a topic.
func mayRead(t *testing.T, cfg config.Config, topic string) {
	t.Helper()
	transport := &kafka.Transport{SASL: login.Mechanism{Username: "admin", Password: "admin"}}
	defer transport.CloseIdleConnections()
	admin := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport}
	res, err := admin.CreateACLs(t.Context(), &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{{
		Principal: "User:app", Host: "*", PermissionType: kafka.ACLPermissionTypeAllow,
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ResourcePatternType: kafka.PatternTypeLiteral,
		Operation: kafka.ACLOperationTypeRead}}})
	if err == nil {
		err = errors.Join(res.Errors...)
	}
	if err != nil {
		t.Fatal(err)
	}
}
