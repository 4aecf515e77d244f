package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// fakeKubectl stands in for kubectl and a cluster: it runs the arguments of a Job's container on this machine, with
// what KUBE_PROGRAM names in place of its image, and keeps what it knows in files below KUBE_STATE.
const fakeKubectl = `#!/bin/sh
cd "$KUBE_STATE" || exit 1
echo "$@" >> calls
name=$(echo "$*" | sed -n 's/.*job[ /]\([a-z0-9-]*\).*/\1/p')
case "$1" in
create)
  cat > manifest
  name=$(sed -n 's/^  name: \([a-z0-9-]*\)$/\1/p' manifest | head -1)
  file=$(sed -n 's/^ *args: \["\(.*\)"\]$/\1/p' manifest)
  mkdir "$name" || exit 1
  ( sh "$KUBE_PROGRAM" "$file" > "$name/log" 2>&1
    echo $? > "$name/code.new"
    mv "$name/code.new" "$name/code" ) < /dev/null > /dev/null 2>&1 &
  echo $! > "$name/pid"
  ;;
get)
  n=$(cat flaky 2>/dev/null || echo 0)
  if [ "$n" -lt "${KUBE_SILENT:-0}" ]; then echo $((n + 1)) > flaky; echo "connection refused" >&2; exit 1; fi
  [ -d "$name" ] || { echo "jobs.batch \"$name\" not found" >&2; exit 1; }
  if [ ! -f "$name/code" ]; then echo '{"status": {"active": 1}}'
  elif [ "$(cat "$name/code")" = 0 ]; then
    echo '{"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"},'
    echo '{"type": "Complete", "status": "True"}]}}'
  else
    echo '{"status": {"conditions": [{"type": "Failed", "status": "True",'
    echo '"reason": "BackoffLimitExceeded", "message": "it has failed"}]}}'
  fi
  ;;
logs)
  while [ ! -f "$name/code" ]; do [ -d "$name" ] || exit 1; sleep 0.05; done
  cat "$name/log"
  ;;
delete)
  [ -d "$name" ] || exit 0
  kill "$(cat "$name/pid")" 2>/dev/null
  rm -rf "$name"
  echo "deleted" >> calls
  ;;
esac
`

// TestKubernetesJob has a Kubernetes Job take the place of the recipes, by examples/external-trainer/kubernetes.py and
// its template: the Job's result is the request's, its failure the attempt's, and a Job that nobody wants any more is
// deleted.
func TestKubernetesJob(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on PATH")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "external-trainer", "kubernetes.py"))
	if err != nil {
		t.Fatal(err)
	}
	r := record.Finetune{Schema: 1, ID: "Model A/1+head1", Model: "Model A", Version: "1", Number: 1,
		ShadowVersion: "1+head1", Classes: 3}
	const results = `result=$(sed -n 's/.*"result": "\(.*\)",.*/\1/p' "$1"); `
	for name, c := range map[string]struct {
		program string
		limit   time.Duration
		want    string // of the error
		silent  int    // times that the cluster does not say how the Job is
	}{
		"result": {results +
			`echo '{"progress": 0.5, "step": "half"}'; echo a line; ` +
			`echo '{"outcome": "unchanged", "why": "no"}' > "$result/report.json"`, time.Minute, "", 3},
		"no result": {`true`, time.Minute, "is complete and left no", 0},
		"failure":   {`exit 3`, time.Minute, "failed: BackoffLimitExceeded: it has failed", 0},
		"unwanted":  {`sleep 20`, 8 * time.Second, "told to stop", 0},
		"silence":   {`sleep 20`, time.Minute, "connection refused", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "unwanted" || name == "silence" {
				testsize.Slow(t) // it waits
			}
			dir, state := t.TempDir(), t.TempDir()
			kubectl := writeFile(t, "kubectl", fakeKubectl)
			if err := os.Chmod(kubectl, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBECTL", kubectl)
			t.Setenv("KUBE_STATE", state)
			t.Setenv("KUBE_PROGRAM", writeFile(t, "program.sh", c.program))
			t.Setenv("PLUMBLINE_JOB_POLL", "0.1")
			t.Setenv("KUBE_SILENT", strconv.Itoa(c.silent))
			task := service.Task{Request: r, Attempt: 1, Dir: dir, Result: filepath.Join(dir, "r")}
			progress := 0.0
			task.Progress = func(_ string, done, _ float64) { progress = done }
			if err := os.Mkdir(task.Result, 0o755); err != nil {
				t.Fatal(err)
			}
			guard, err := trainerd.GuardCommand(10 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			err = (&service.Command{Args: []string{python, "-B", script}, Guard: guard, Grace: 10 * time.Second,
				Log: slog.New(slog.DiscardHandler)}).Run(ctx, task)
			calls, rerr := os.ReadFile(filepath.Join(state, "calls"))
			if rerr != nil {
				t.Fatalf("kubectl was not called: %v, %v", rerr, err)
			}
			if c.want == "" && (err != nil || progress != .5) || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, progress %v; want %q", err, progress, c.want)
			}
			if name == "unwanted" || name == "result" || name == "silence" {
				if _, err := os.Stat(filepath.Join(state, "plumbline-model-a-1-head1-baff8447")); !errors.Is(err,
					os.ErrNotExist) || !strings.HasSuffix(strings.TrimSpace(string(calls)), "deleted") {
					t.Errorf("the Job is still there: %s", calls)
				}
			}
			if !strings.Contains(string(calls), "job plumbline-model-a-1-head1-") {
				t.Errorf("calls %s", calls)
			}
		})
	}
}
