package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/setting"
)

// grace is how long a command that is told to end may take: one that reads a large file does not look up before it has
// read it.
const grace = 3 * time.Second

// bounded makes a command that reads files end where that takes more memory than --max-memory, and soon after SIGTERM
// or Ctrl-C whatever it does.
func bounded(cmd *cobra.Command) *cobra.Command {
	var most string
	cmd.Flags().StringVar(&most, "max-memory", "",
		"give up where files take more `memory` than this, as 4GiB; 0 for no bound (default three quarters of the machine's)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		limit, err := memoryLimit(most)
		if err != nil {
			return usageErrorf("--max-memory %q: %v", most, err)
		}
		return within(cmd, limit, func() error { return run(cmd, args) })
	}
	return cmd
}

func memoryLimit(text string) (int64, error) {
	if text != "" {
		return setting.ParseBytes(text)
	}
	const parts, of = 3, 4
	return heap.Machine() / of * parts, nil
}

// within runs f in another goroutine, which is left behind where it must: the process ends with the command.
func within(cmd *cobra.Command, limit int64, f func() error) error {
	ctx := cmd.Context()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	if limit > 0 {
		go func() {
			if heap.Exceeds(watch, limit) {
				close(over)
			}
		}()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-over:
		return fmt.Errorf("%s: more than %d MiB of memory are needed (--max-memory)", cmd.CommandPath(), limit>>20)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("%s: %w", cmd.CommandPath(), context.Cause(ctx))
	}
}
