package main

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// TestScale has a deployment get more shards twice, between parts of a stream, with rows that wait, and compares the
// state with that of one that has the first number. Topics are keyed, or split from the start.
func TestScale(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(11, batchtest.Options{N: 600, MaxLag: 20 * batchtest.Second, Unlabelled: .1, Sharpness: 2,
		Regions: 2})
	for name, keyed := range map[string]bool{"keyed": true, "split": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := runScaled(t, keyed, rows, nil)
			got := runScaled(t, keyed, rows, []string{"3", "5"})
			if !maps.Equal(got.Models, want.Models) || len(want.Models) == 0 {
				t.Errorf("state hash %v, want %v", got.Models, want.Models)
			}
			for _, name := range []string{"predictions", "labels", "joined", "late", "duplicates", "orphans"} {
				if got.Counts[name] != want.Counts[name] {
					t.Errorf("%s: %v, want %v", name, got.Counts[name], want.Counts[name])
				}
			}
			if got.Unaccounted != 0 {
				t.Errorf("%d rows are not accounted for", got.Unaccounted)
			}
		})
	}
}

// runScaled sends parts of a stream, and before each but the first has the shards become as many as numbers say.
func runScaled(t *testing.T, keyed bool, rows []batchtest.Row, numbers []string) *engine.ProcessStatus {
	const partitions = 2
	brokers := kafkatest.Start(t)
	path, cfg := repartitionConfig(t, brokers, partitions, keyed)
	refused := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"scale", "-c", path, "--by", "ann", "--why", "a test", "--partitions"}, args...)
		if code, _, stderr := runCommand(t, args...); code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, %s; want %q", args, code, stderr, want)
		}
	}
	refused("no process of group plumbline has run yet", "3")
	rt := engine.New(cfg, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	place := func(_ int, r *batchtest.Row) int { return murmur.PartitionOf([]byte(r.ID), partitions) }
	third := len(rows) / 3
	var st *engine.ProcessStatus
	for part := range 3 {
		if part > 0 && numbers != nil {
			n := numbers[part-1]
			code, out, stderr := runCommand(t, "scale", "-c", path, "--partitions", n, "--by", "ann", "--why", "a test")
			if code != exitDone || !strings.Contains(out, "there are "+n+" shards") {
				t.Fatalf("scale: %d %s %s", code, out, stderr)
			}
		}
		of := rows[part*third : (part+1)*third]
		// Labels of one part come after predictions of the next: nothing is promised before the end.
		until := rows[0].TS - 1
		if part == 2 {
			until = rows[len(rows)-1].TS + 100*batchtest.Second
		}
		sendRows(t, brokers, partitions, of, until, place)
		if part == 2 && numbers != nil { // partitions that nobody writes to hold all back but for this
			sendRows(t, brokers, 5, nil, until, place)
		}
		if part == 2 {
			st = drainedAt(t, rt, until)
		} else {
			drained(t, rt)
		}
	}
	if numbers != nil {
		lost := cfg // with all that is known of it
		lost.Checkpoints.Dir = t.TempDir()
		d := deployment.New(&lost, slog.New(slog.DiscardHandler))
		err := d.Connect()
		if err == nil {
			err = d.Open(context.Background())
		}
		if err != nil || d.Plan().Of != 5 {
			t.Errorf("without its state the deployment has %d shards, %v; want 5", d.Plan().Of, err)
		}
		refused("they cannot become 2", "2")
		refused("5000 shards, at most 4096", "5000")
		refused("--partitions 0: must be 1 or more", "0")
	}
	return st
}
