package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestStateDirElsewhere: commands that run in another directory than the processes do not take the state for lost. They
// name the directory that they looked for, and make none.
func TestStateDirElsewhere(t *testing.T) {
	path, _ := deploy(t, fmt.Sprintf("kafka: {brokers: [%q], partitions: 1}\nhttp: {listen: \"\"}\n"+
		"checkpoints: {dir: ./state}\n", kafkatest.Start(t)[0]))
	dir := t.TempDir()
	t.Chdir(dir)
	dir, err := os.Getwd() // as links are resolved
	if err != nil {
		t.Fatal(err)
	}
	const todo = "does not exist: run this in the directory of plumbline run, or make checkpoints.dir absolute"
	want := "checkpoints.dir ./state: " + filepath.Join(dir, "state") + " " + todo
	for _, args := range [][]string{
		{"state", "reset", "--task", "all", "--why", "x"},
		{"state", "reset", "--task", "all", "--from", "earliest", "--why", "x", "--accept-loss"},
		{"scale", "--partitions", "2", "--why", "x"},
		{"backup", "-o", filepath.Join(t.TempDir(), "b.tar.gz")},
	} {
		code, out, stderr := runCommand(t, append(args, "-c", path)...)
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %s%s; want %q", args, code, out, stderr, want)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) != 0 {
			t.Fatalf("%v made %v, %v", args, made, err)
		}
	}
	if err := os.Mkdir("state", 0o700); err != nil {
		t.Fatal(err)
	}
	_, out, stderr := runCommand(t, "state", "reset", "--task", "all", "--from", "earliest", "--why", "x", "-c", path)
	if want := "no checkpoint that can be used in " + dir; !strings.Contains(out, want) {
		t.Errorf("%s%s; want %q", out, stderr, want)
	}
	code, _, stderr := runCommand(t, "state", "reset", "--task", "models/9", "--why", "x", "-c", path)
	if want := `--task "models/9": no such task: must be shards/0 to shards/0`; code != exitUsage ||
		!strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %s; want %q", code, stderr, want)
	}
}
