//go:build unix

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHangUpStops: a terminal that goes away ends a process as SIGTERM does, with its last checkpoints.
func TestHangUpStops(t *testing.T) {
	ctx, stop := untilSignal()
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
		if why := context.Cause(ctx).Error(); !strings.HasPrefix(why, "hangup") { // the log says it
			t.Errorf("it ends because of %q", why)
		}
	case <-time.After(20 * time.Second):
		t.Error("SIGHUP ends nothing")
	}
}
