// Package disk says how much space file systems have.
package disk

import (
	"os"
	"path/filepath"
)

// Space is what a file system has, in bytes.
type Space struct{ Free, Size uint64 } // Free: for this user

// Under returns the space of the file system of Existing(dir). ok is false if the system does not tell.
func Under(dir string) (s Space, ok bool) { return fileSystem(Existing(dir)) }

// Existing is the directory, or the nearest above it that exists.
func Existing(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
