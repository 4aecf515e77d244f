package heap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

// ErrMemory means that a function needs more memory than it may have.
var ErrMemory = errors.New("more memory is needed")

// grace is how long a function that is told to end may take: one that reads a large file does not look up before it has
// read it.
const grace = 3 * time.Second

// Within runs f until it returns, needs more than limit bytes (0: no bound), or does not return soon after ctx is done.
// Then f is left behind: the caller ends the process.
func Within(ctx context.Context, limit int64, f func() error) error {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	if limit > 0 {
		go func() {
			if exceeds(watch, limit) {
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
		return fmt.Errorf("%w than %d MiB", ErrMemory, limit>>20)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return context.Cause(ctx)
	}
}

// exceeds waits until more than limit bytes are in use, and returns true; false where ctx is done first. Garbage is
// collected as often as it takes to stay below.
func exceeds(ctx context.Context, limit int64) bool {
	const every = 10 * time.Millisecond
	before := debug.SetMemoryLimit(-1)
	if limit < before { // GOMEMLIMIT may be lower
		debug.SetMemoryLimit(limit - limit/8)
		defer debug.SetMemoryLimit(before)
	}
	use := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if metrics.Read(use); use[0].Value.Uint64() > uint64(limit) { //nolint:gosec // positive
				return true
			}
		}
	}
}

// Machine is the memory that this process may have: that of the machine, or of the container; 0 where it is not known.
func Machine() int64 {
	all := int64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := bytes.Fields(text); len(f) > 1 {
			kb, _ := strconv.ParseInt(string(f[1]), 10, 64)
			all = kb << 10
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if n, perr := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && perr == nil && n > 0 {
			if all == 0 || n < all {
				all = n
			}
		}
	}
	return all
}
