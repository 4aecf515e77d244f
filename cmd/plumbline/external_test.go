package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// python is one that has PyTorch: that of PLUMBLINE_PYTHON, or of `make external-trainer`.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PLUMBLINE_PYTHON")
	if path == "" {
		path = filepath.Join("..", "..", ".cache", "bench-venv", "bin", "python")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no Python with PyTorch: make external-trainer, or set PLUMBLINE_PYTHON (%v)", err)
	}
	return path
}

// TestExternalTrainer has the reference script take the place of the recipes: the result has the same format, and its
// head is as good as theirs.
func TestExternalTrainer(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "external-trainer", "train.py"))
	if err != nil {
		t.Fatal(err)
	}
	command := []string{python(t), "-B", script}
	brokers := kafkatest.Start(t)
	_, cfg := trainerFiles(t, brokers, t.TempDir(),
		func(c *config.Config) { c.Trainer.Command, c.Trainer.Attempts = command, 1 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- trainerd.Run(ctx, cfg, trainerd.Options{Once: true}, slog.New(slog.DiscardHandler)) }()
	defer func() { cancel(); <-done }()
	r := ask(t, brokers, cfg, 1, "auto")
	h := awaitResults(t, brokers, cfg, 1)[0]
	if h.Outcome != record.OutcomeTrained || h.Features != 8 || h.Classes != 3 || len(h.Artefacts) != 3 {
		t.Fatalf("got %s: %s", h.Outcome, h.Why)
	}
	if _, err := service.Weights(h); err != nil {
		t.Fatal(err)
	}
	var ev struct {
		After struct{ NLL, Accuracy float64 }
	}
	if err := json.Unmarshal(h.Evidence, &ev); err != nil {
		t.Fatal(err)
	}
	if ev.After.Accuracy < .8 {
		t.Errorf("accuracy %.3f of rows whose features give the class away", ev.After.Accuracy)
	}
	own := undisturbedEvidence(t, cfg, r)
	if d := ev.After.NLL - own; d > .02 || d < -.02 {
		t.Errorf("validation NLL %.4f, that of our recipe %.4f: want them near each other", ev.After.NLL, own)
	}
	var sawProgress bool
	for _, b := range headRecords[record.Job](t, brokers, cfg, record.HeadJob) {
		sawProgress = sawProgress || b.Done > 0 && b.NLL > 0
	}
	if !sawProgress {
		t.Log("the script was done before the first heartbeat")
	}
}

// undisturbedEvidence is the validation NLL of the recipe ce on the same rows.
func undisturbedEvidence(t *testing.T, cfg config.Config, r record.Finetune) float64 {
	t.Helper()
	cfg.Trainer.Command, r.Recipe = nil, "ce"
	run, err := trainerd.NewRunner(trainerd.Loader{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := run.Run(t.Context(), service.Task{Request: r, Attempt: 1, Dir: dir, Result: dir,
		Progress: func(string, float64, float64) {}}); err != nil {
		t.Fatal(err)
	}
	res, err := service.ReadResult(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	var ev struct{ After struct{ NLL float64 } }
	if err := json.Unmarshal(res.Evidence, &ev); err != nil {
		t.Fatal(err)
	}
	return ev.After.NLL
}

// TestCommand: what a program leaves and says, good and bad, without Python.
func TestCommand(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh")
	}
	r := record.Finetune{Schema: 1, ID: "m/1+head1", Model: "m", Version: "1", Number: 1, ShadowVersion: "1+head1",
		Classes: 3}
	const findResult = `result=$(sed -n 's/.*"result": "\(.*\)",/\1/p' "$0"); `
	for name, c := range map[string]struct {
		script string
		wait   time.Duration
		ok     bool
	}{
		"unchanged": {`echo '{"progress":0.5,"step":"half","nll":1.5}'; ` + findResult +
			`echo '{"outcome":"unchanged","why":"no"}' > "$result/report.json"`, time.Minute, true},
		"nothing": {`exit 0`, time.Minute, false},
		"fails":   {`echo broken >&2; exit 3`, time.Minute, false},
		"garbage": {findResult + `echo '{"outcome":"trained"}' > "$result/report.json"; ` +
			`echo x > "$result/head.safetensors"`, time.Minute, false},
		"hangs": {`sleep 60`, 200 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			task := service.Task{Request: r, Attempt: 1, Dir: dir, Result: filepath.Join(dir, "r")}
			if err := os.Mkdir(task.Result, 0o755); err != nil {
				t.Fatal(err)
			}
			progress := 0.0
			task.Progress = func(_ string, done, _ float64) { progress = done }
			ctx, cancel := context.WithTimeout(t.Context(), c.wait)
			defer cancel()
			run := &service.Command{Args: []string{"/bin/sh", "-c", c.script}, Grace: time.Second,
				Log: slog.New(slog.DiscardHandler)}
			began := time.Now()
			err := run.Run(ctx, task)
			if (err == nil) != c.ok {
				t.Errorf("got error %v", err)
			}
			if c.ok && progress != .5 {
				t.Errorf("progress %v was told, want 0.5", progress)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
