//go:build unix && !solaris && !aix

package filelock

import (
	"os"
	"syscall"
)

// lock is false where another process has the file.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

func own(f *os.File) bool { return lock(f) }
