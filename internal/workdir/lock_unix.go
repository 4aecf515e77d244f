//go:build unix && !solaris && !aix

package workdir

import (
	"os"
	"syscall"
)

// tryLock locks the file for this process until it is closed; false where somebody else has it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
