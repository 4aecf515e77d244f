// Package filelock locks files for as long as a process lives: the system frees the lock however the process ends. What
// is closed is free, too.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld means that another process has the lock.
var ErrHeld = errors.New("is in use by another process")

// Open locks a file, which it makes if it is not there, or returns ErrHeld. Systems without flock refuse nobody.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil && !lock(f) {
		return nil, errors.Join(ErrHeld, f.Close())
	}
	return f, err
}

// Create makes and locks a file of this process, with a name as of os.CreateTemp.
func Create(dir, pattern string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		// Until it is locked another process may take the new file for a dead one's and remove it.
		if own(f) && stillNamed(f) {
			return f, nil
		}
		_ = f.Close()
	}
}

// Take locks a file that Create made in a process that has ended; nil where that lives, or the file is gone. Without
// flock it takes none that has content: nobody knows whose it is.
func Take(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if own(f) && stillNamed(f) {
		return f
	}
	_ = f.Close()
	return nil
}

// stillNamed reports whether a file has its name: one that was locked late may have been removed before.
func stillNamed(f *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(f.Name())
	return err == nil && os.SameFile(a, b)
}
