// Package disk says how much space file systems have.
package disk

import (
	"os"
	"path/filepath"
)

// Space is what a file system has, in bytes.
type Space struct{ Free, Size uint64 } // Free: for this user

// Under returns the space of a directory's file system or, if the directory does not exist yet, of that of the nearest
// existing parent. ok is false if the system does not tell.
func Under(dir string) (s Space, ok bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return s, false
	}
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return fileSystem(dir)
		}
		dir = filepath.Dir(dir)
	}
}
