//go:build unix && !solaris && !aix

package service

import (
	"os"
	"syscall"
)

// Lock locks a file for this process until it ends or calls release; held says that another one has it.
func Lock(path string) (release func(), held bool, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil, true, f.Close()
	}
	return func() { _ = f.Close() }, false, nil
}
