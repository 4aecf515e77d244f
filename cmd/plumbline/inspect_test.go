package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/inspect"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// TestInspect runs the pipeline and reads what it left: checkpoints of a shard and of a model task, pane messages.
func TestInspect(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	dir := t.TempDir()
	_, cfg := deploy(t, fmt.Sprintf(
		"kafka: {brokers: [%q], partitions: 1}\ncheckpoints: {dir: %q, interval: 100ms}\n"+
			"event_time: {idle_timeout: 500ms, max_ahead: 0s}\nhttp: {listen: \"\"}\n", brokers[0], dir))
	rows := batchtest.Rows(1, batchtest.Options{N: 400, MaxLag: 20 * batchtest.Second, Sharpness: 2})
	kafkatest.Write(t, brokers, messagesOf(t, rows, 0)...)
	rt, stop := start(t, cfg, engine.Stages{Shards: true, Models: true})
	drained(t, rt)
	stop()

	var shard pipeline.CheckpointInfo
	runInspect(t, newestFile(t, dir, "shards/shard-00000"), "checkpoint", &shard)
	if shard.Counts["predictions"] != 400 || shard.Offsets["logits"] != 8 || shard.Offsets["labels"] != 8 ||
		shard.Watermark == "" || len(shard.Sections) < 5 {
		t.Errorf("shard: got %+v", shard)
	}
	var model pipeline.CheckpointInfo
	runInspect(t, newestFile(t, dir, "models/model-00000"), "checkpoint", &model)
	// Counts, idle, losses, the task and what its stages keep.
	taken := model.Counts["pane_messages"]
	if len(model.Sections) < 3 || taken == 0 || model.Offsets["panes"] != taken {
		t.Errorf("model task: got %+v", model)
	}
	seen, labelled, punctuations := int64(0), int64(0), 0
	for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Panes) {
		var p struct {
			Closed string               `json:"closed"`
			Cells  []inspect.CellReport `json:"cells"`
		}
		runInspect(t, writeFile(t, "pane", string(m.Value)), "pane", &p)
		if p.Closed != "" {
			punctuations++
		}
		for _, c := range p.Cells {
			seen, labelled = seen+c.Seen, labelled+c.Labelled
			if (c.ECE == nil) != (c.Labelled == 0) {
				t.Errorf("cell %+v: an ECE where there are labels, and only there", c)
			}
		}
	}
	if want := int64(len(batchtest.ByLabelTime(rows))); seen != 400 || labelled != want || punctuations == 0 {
		t.Errorf("panes have %d seen, %d labelled, %d punctuations; want 400, %d, some", seen, labelled, punctuations,
			want)
	}
}

// inspect runs the command with and without --json.
func runInspect(t *testing.T, file, kind string, into any) {
	t.Helper()
	code, out, stderr := runCommand(t, "inspect", kind, file, "--json")
	if code != exitDone {
		t.Fatalf("inspect %s: %s", kind, stderr)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := runCommand(t, "inspect", kind, file); code != exitDone || out == "" {
		t.Errorf("inspect %s as text: %q, %s", kind, out, stderr)
	}
}

func newestFile(t *testing.T, dir, key string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "plumbline", key, "checkpoint-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint below %s: %v", key, err)
	}
	return files[len(files)-1]
}

func TestInspectDamaged(t *testing.T) {
	c, err := pipeline.EncodeCheckpoint([]pipeline.Section{{Name: "counts", State: pipeline.NewCounts()}})
	if err != nil {
		t.Fatal(err)
	}
	data := c.Data
	good := writeFile(t, "good", string(data))
	if code, _, stderr := runCommand(t, "inspect", "checkpoint", good); code != exitDone {
		t.Errorf("good: %s", stderr)
	}
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] ^= 1
		file := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runCommand(t, "inspect", "checkpoint", file); code != exitFailed ||
			!strings.Contains(stderr, "damaged or foreign checkpoint") {
			t.Errorf("byte %d: exit code %d, %s", i, code, stderr)
		}
	}
	if code, _, stderr := runCommand(t, "inspect", "pane", good); code != exitFailed ||
		!strings.Contains(stderr, "not a pane message") {
		t.Errorf("a checkpoint as a pane: exit code %d, %s", code, stderr)
	}
	if code, _, _ := runCommand(t, "inspect", "checkpoint"); code != exitUsage {
		t.Errorf("no file: exit code %d", code)
	}
}
