//go:build linux || darwin || freebsd

package web

import (
	"math"

	"golang.org/x/sys/unix"
)

// fileLimit is how many files this process may have open.
func fileLimit() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur) //nolint:gosec,unconvert // signed on some systems
}
