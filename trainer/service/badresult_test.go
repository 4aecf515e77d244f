package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestCommandResults: what a program leaves is checked before it is a result, and an error names the file and what is
// wrong with it.
func TestCommandResults(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh to run programs with")
	}
	heads := t.TempDir()
	write := func(name string, h *head.Head) {
		if err := writeHead(filepath.Join(heads, name), h); err != nil {
			t.Fatal(err)
		}
	}
	write("good", head.FreshLinear(3, 2, 1))
	write("narrow", head.FreshLinear(2, 2, 1))
	write("many", head.FreshLinear(3, 5, 1))
	model, err := artefact.ONNX(head.FreshLinear(3, 2, 1), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(heads, "onnx"), model, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("heads", heads)
	const (
		good    = `cp "$heads/good" "$result/head.safetensors"; `
		narrow  = `cp "$heads/narrow" "$result/head.safetensors"; `
		many    = `cp "$heads/many" "$result/head.safetensors"; `
		onnx    = `cp "$heads/onnx" "$result/head.onnx"; `
		trained = `echo '{"outcome": "trained", "why": "x"}' > "$result/report.json"`
	)
	for name, c := range map[string]struct{ script, want string }{
		"good":     {good + trained, ""},
		"own onnx": {good + onnx + trained, ""},
		"bad onnx": {good + `echo garbage > "$result/head.onnx"; ` + trained, "head.onnx: onnx: "},
		"empty onnx": {
			good + `: > "$result/head.onnx"; ` + trained,
			"head.onnx: onnx: 0 bytes without a graph of nodes",
		},
		"features":    {narrow + trained, "head.safetensors: a head of 2 features, the rows have 3"},
		"classes":     {many + trained, "head.safetensors: 5 classes, the request is of 2"},
		"no head":     {trained, "result: outcome trained, but no head.safetensors"},
		"directory":   {`mkdir "$result/head.safetensors"; ` + trained, "head.safetensors: mode d"},
		"nothing":     {"true", "result: no report.json"},
		"says why":    {"echo first >&2; echo last >&2; exit 3", "exit status 3: last"},
		"says no why": {"exit 3", "exit status 3"},
		"signal":      {"exit 139", "exit status 139 (signal: segmentation fault)"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := &data.Set{D: 3, K: 2, X: make([]float32, 12), Y: []int32{0, 1, 0, 1}}
			load := func(context.Context, record.Finetune) (Rows, error) { return Rows{Train: rows, Valid: rows}, nil }
			run := &Command{
				Args: []string{"/bin/sh", "-c", resultOf("$1") + c.script, "program"},
				Load: load,
				Log:  slog.New(slog.DiscardHandler),
			}
			err := run.Run(t.Context(), newTask(t))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.HasSuffix(err.Error(), ": ") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCommandProgress: the progress that a program reports stays in bounds, whatever it writes.
func TestCommandProgress(t *testing.T) {
	var got []string
	task := Task{Progress: func(step string, done, nll float64) {
		got = append(got, fmt.Sprintf("%d %g %g", len(step), done, nll))
	}}
	c := &Command{Log: slog.New(slog.DiscardHandler)}
	var log bytes.Buffer
	for _, line := range []string{
		`{"progress": 0.5, "step": "epoch", "nll": 1.5}`,
		`{"progress": 7}`,
		`{"progress": -1}`,
		`{"progress": 1e999}`,
		`{"progress": "x"}`,
		`{"progress": 1, "step": "` + strings.Repeat("é", 500_000) + `"}`,
	} {
		c.readLine([]byte(line), &log, task)
	}
	if want := []string{"5 0.5 1.5", "0 1 0", "0 0 0", "203 1 0"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestResultTooLarge: a result that its topic does not take ends the job, not the trainer, which goes on with the next.
func TestResultTooLarge(t *testing.T) { synctest.Test(t, testResultTooLarge) }

func testResultTooLarge(t *testing.T) {
	j := newJournal()
	large, small := j.request(t, 1), j.request(t, 2)
	j.most = 100_000
	tr := j.trainer(t, "a", t.TempDir(), runnerFunc(func(_ context.Context, task Task) error {
		rep := Report{Outcome: record.OutcomeTrained, Why: strings.Repeat("w", 10_000)}
		if task.Request.Number == 1 {
			rep.Evidence = json.RawMessage(`"` + strings.Repeat("e", 200_000) + `"`)
		}
		return WriteResult(task.Result, rep, head.FreshLinear(3, 2, 1))
	}))
	r := j.await(t, tr, large.ID, ended).Result
	if r.Outcome != record.OutcomeFailed || !strings.Contains(r.Why, "the result cannot be published: ") ||
		!strings.Contains(r.Why, " 200002 evidence: record too large for the topic") {
		t.Errorf("got %s: %s", r.Outcome, r.Why)
	}
	r = j.await(t, tr, small.ID, ended).Result
	if r.Outcome != record.OutcomeTrained || len(r.Why) > maxWhy+3 {
		t.Errorf("got %s: %d bytes of why", r.Outcome, len(r.Why))
	}
}
