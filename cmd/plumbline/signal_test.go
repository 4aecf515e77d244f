//go:build unix

package main

import (
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
	case <-time.After(20 * time.Second):
		t.Error("SIGHUP ends nothing")
	}
}
