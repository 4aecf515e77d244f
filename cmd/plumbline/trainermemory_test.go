package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestTrainerMemory has the service train on an archive whose features are larger than trainer.memory_bytes, and
// measures what it holds: by far less than the features where the bound is small, and more than them where it is not,
// which shows that the measurement would tell.
func TestTrainerMemory(t *testing.T) {
	testsize.NoRace(t)
	testsize.Slow(t) // writes 400 MB and trains for some seconds
	const n, d, k, features = 200_000, 1024, 10, 2 * 200_000 * 1024
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	writeBigArchive(t, archive, n, d, k)
	recipe := filepath.Join(dir, "recipe.json")
	if err := os.WriteFile(recipe, []byte(shortRecipe(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	brokers := kafkatest.Start(t)
	peak := map[int]int64{}
	for i, memory := range []int{16 << 20, 1 << 30} {
		cfg := config.Default()
		cfg.Topics.Finetune, cfg.Topics.Heads = fmt.Sprintf("finetune-%d", i), fmt.Sprintf("heads-%d", i)
		kafkatest.CreateTopics(t, brokers, 2, cfg.Topics.Finetune, cfg.Topics.Heads)
		file := writeFile(t, "plumbline.yaml",
			fmt.Sprintf("kafka: {brokers: [%q], partitions: 2}\ntopics: {finetune: %s, heads: %s}\n"+
				"trainer: {dir: %q, archive: %q, backend: go, name: a, settle: 0s, max_rows: 0, memory_bytes: %d}\n",
				brokers[0], cfg.Topics.Finetune, cfg.Topics.Heads, filepath.Join(dir,
					fmt.Sprint("trainer", i)), archive,
				memory))
		askFor(t, brokers, cfg, k, recipe)
		peak[memory] = trainOnce(t, file)
		h := awaitResults(t, brokers, cfg, 1)[0]
		var ev struct{ Rows trainerd.Rows }
		if err := json.Unmarshal(h.Evidence, &ev); err != nil || h.Outcome != record.OutcomeTrained {
			t.Fatalf("%s: %s, %v", h.Outcome, h.Why, err)
		}
		t.Logf("memory_bytes %d MiB: %d rows, %d MiB of features, streamed %v, peak resident %d MiB; %s", memory>>20,
			ev.Rows.Rows, ev.Rows.FeatureBytes>>20, ev.Rows.Streamed, peak[memory]>>20, h.Why)
		if ev.Rows.Rows != n || ev.Rows.FeatureBytes != features || ev.Rows.Streamed != (memory < features) {
			t.Errorf("rows %+v", ev.Rows)
		}
	}
	if small := peak[16<<20]; small == 0 || small > features*3/4 {
		t.Errorf("peak of %d bytes with 16 MiB of %d bytes of features in memory", small, int64(features))
	}
	if peak[1<<30] < features {
		t.Errorf("peak of %d bytes with all features in memory, %d bytes: what is measured?", peak[1<<30],
			int64(features))
	}
}

// shortRecipe is cross-entropy for one epoch.
func shortRecipe(t *testing.T) string {
	t.Helper()
	plan, _, err := trainerd.Plan("ce", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := plan[0].Config
	c.Epochs, c.Head = 1, "linear"
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// askFor writes a request for the rows of writeBigArchive.
func askFor(t *testing.T, brokers []string, cfg config.Config, k int, recipe string) {
	t.Helper()
	r := record.Finetune{Schema: 1, Model: "m", Version: "1", Number: 1, ShadowVersion: "1+head1", ID: "m/1+head1",
		Classes: k, Recipe: recipe, Seed: 7,
		DecidedAt: moment("2024-01-01T00:00:00Z"), ShadowFrom: moment("2024-01-01T00:00:00Z"),
		Data: record.FinetuneData{From: moment("2020-01-01T00:00:00Z"), To: moment("2030-01-01T00:00:00Z")}}
	writeRequest(t, brokers, cfg, r)
}

// trainOnce runs `plumbline trainer --once` and returns its peak of resident memory.
func trainOnce(t *testing.T, file string) int64 {
	t.Helper()
	cmd, log := process("trainer", "--once", "-c", file)
	cmd.Env = append(cmd.Env, "GOMEMLIMIT=off")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := make(chan map[string]int64, 1)
	go watchMemory(cmd.Process.Pid, peak)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("trainer: %v\n%s", err, log)
	}
	return (<-peak)["VmHWM"]
}
