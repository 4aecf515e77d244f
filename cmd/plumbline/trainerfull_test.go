//go:build linux

package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/trainer/service"
)

// TestTrainerDiskFull: where trainer.dir has no room an attempt fails with a reason that names the file, and leaves no
// result that is taken for one; when there is room again the same job goes on and ends.
func TestTrainerDiskFull(t *testing.T) {
	brokers := kafkatest.Start(t)
	full := t.TempDir()
	const small, large = "size=8k", "size=4m"
	if err := syscall.Mount("none", full, "tmpfs", 0, small); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(full, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name    string
		command []string
	}{{"command", []string{"/bin/sh", "-c", "exit 1"}}, {"recipes", nil}} {
		name, command := c.name, c.command
		t.Run(name, func(t *testing.T) {
			_, cfg := trainerFiles(t, brokers, t.TempDir(), func(c *config.Config) {
				c.Trainer.Dir, c.Trainer.Command = filepath.Join(full, name), command
				c.Topics.Finetune, c.Topics.Heads = name+".finetune", name+".heads"
			})
			run, err := trainerd.NewRunner(trainerd.Loader{Config: cfg, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(full, name)
			task := service.Task{Request: ask(t, brokers, cfg, 1, "maccal"), Attempt: 1, Dir: dir,
				Result: filepath.Join(dir, "r"), Progress: func(string, float64, float64) {}}
			if err := os.MkdirAll(task.Result, 0o755); err != nil {
				t.Fatal(err)
			}
			err = run.Run(t.Context(), task)
			var path *os.PathError
			if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &path) || errors.Is(err, service.ErrHopeless) {
				t.Fatalf("got %v, want that there is no space for a file that is named", err)
			}
			if _, err := os.Stat(filepath.Join(task.Result, service.FileReport)); err == nil {
				t.Fatal("there is a report")
			}
			if name != "recipes" {
				return
			}
			if err := syscall.Mount("none", full, "tmpfs", syscall.MS_REMOUNT, large); err != nil {
				t.Fatal(err)
			}
			if err := run.Run(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			if _, err := service.ReadResult(task.Result, task.Request); err != nil {
				t.Fatal(err)
			}
		})
	}
}
