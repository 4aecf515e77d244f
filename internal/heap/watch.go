package heap

import (
	"bytes"
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

// Exceeds waits until more than limit bytes are in use, and returns true; false where ctx is done first. Garbage is
// collected as often as it takes to stay below.
func Exceeds(ctx context.Context, limit int64) bool {
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
