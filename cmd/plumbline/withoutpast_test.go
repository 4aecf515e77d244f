package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestPastThatMayNotBeRead: without the right to read what it has published, a process says so and shows what its tasks
// remember of all models.
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
	var log syncBuffer
	for _, said := range []string{"", "the page shows no snapshots of before this process"} {
		rt := engine.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true}) }()
		eventually.Get(t, "the latest snapshots of all models are shown", func() (int, bool) {
			n := len(rt.History.Series())
			return n, n == models*len(cfg.Windows)
		})
		eventually.Get(t, fmt.Sprintf("the log says %q", said), func() (string, bool) {
			text := log.String()
			return text, strings.Contains(text, said)
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
