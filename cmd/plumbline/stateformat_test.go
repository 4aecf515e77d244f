package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/doctor"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
)

// bytesState is a state that is its bytes.
type bytesState []byte

func (b bytesState) AppendState(dst []byte) ([]byte, error) { return append(dst, b...), nil }
func (b bytesState) RestoreState([]byte) error              { return nil }

// TestStateOfAnotherBuild: state reset does not say that a checkpoint can be used which this build refuses, names the
// build that can, and lets the task begin anew; doctor names it before an upgrade, and restore
// refuses a copy of it before it writes anything.
func TestStateOfAnotherBuild(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	path, cfg := deploy(t, fmt.Sprintf("kafka: {brokers: [%q], partitions: 1}\nhttp: {listen: \"\"}\n"+
		"checkpoints: {dir: %q}\n", kafkatest.Start(t)[0], state))
	store := &dirstore.Store{Dir: state, Keep: 2}
	for key, section := range map[string]string{"models/model-00000": "model", "shards/shard-00000": "watermark"} {
		cp, err := pipeline.EncodeCheckpoint([]pipeline.Section{{Name: section, Version: 99, State: bytesState("x")}})
		if err == nil {
			err = store.Save(t.Context(), cfg.Group+"/"+key, 1, cp)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if f := examine(t, path)["state"]; f.State != doctor.Bad || !strings.Contains(f.Found, "2 of 2 tasks") ||
		!strings.Contains(f.Found, "has version 99, this build reads version ") {
		t.Errorf("doctor says of the state: %+v", f)
	}
	code, out, stderr := runCommand(t, "state", "reset", "--task", "all", "--from", "earliest", "--why", "x",
		"-c", path)
	for _, want := range []string{"section model has version 99, this build reads version ",
		"section watermark has version 99", "The build that wrote it can use it, and loses nothing"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s%s; want %q", code, out, stderr, want)
		}
	}
	copied := filepath.Join(dir, "copy.tar.gz")
	run(t, "backup", "-c", path, "-o", copied)
	other, _ := deploy(t, fmt.Sprintf("kafka: {brokers: [%q], partitions: 1}\nhttp: {listen: \"\"}\n"+
		"checkpoints: {dir: %q}\n", kafkatest.Start(t)[0], filepath.Join(dir, "other")))
	code, out, stderr = runCommand(t, "restore", copied, "-c", other)
	if code != exitFailed || !strings.Contains(stderr, "section model has version 99") ||
		!strings.Contains(stderr, "Restore it with the build that wrote it, plumbline ") {
		t.Errorf("restore: exit code %d, %s%s", code, out, stderr)
	}
}
