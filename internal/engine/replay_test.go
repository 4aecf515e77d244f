package engine_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestReplayOfSlowStream: with a row a minute each row has a pane of its own, and with labels inline all panes wait for
// the end of the silent labels input. Snapshots are passed on while panes are processed: together they are gigabytes.
func TestReplayOfSlowStream(t *testing.T) {
	const n = 1000
	rows := &feed.Rows{Model: "m", Version: "1", N: n, K: 2, Scores: make([]float32, 2*n), Label: make([]int32, n)}
	for i := range n {
		rows.Scores[2*i], rows.Label[i] = float32(i%7)-3, int32(i%2)
	}
	src, err := rows.Open(feed.Order{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{EventRate: 1. / 60, Start: arrowio.Time(1_800_000_000e9), IDPrefix: "row",
		InlineLabels: true, End: true})
	if err != nil {
		t.Fatal(err)
	}
	r := engine.NewReplay(config.Default(), slog.New(slog.DiscardHandler))
	defer r.Close()
	states, snapshots := map[string]bool{}, 0
	r.Listen = func(m pipeline.Message) {
		if _, ok := m.Record.(*record.Snapshot); !ok {
			return
		}
		if snapshots++; snapshots%50 != 0 {
			return
		}
		hash, err := r.Model.Hash()
		if err != nil {
			t.Error(err)
		}
		states[hash["m"]] = true
	}
	ctx := context.Background()
	if err := r.Files(ctx, f, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if snapshots < n || len(states) < 10 {
		t.Errorf("%d snapshots, passed on in %d states of the model, want one a row at least, and 10", snapshots,
			len(states))
	}
}
