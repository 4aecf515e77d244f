package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Write makes a file of what fill writes, whole or not at all, and replaces one of that name. Until it is complete it
// has a name of pattern, as os.CreateTemp makes it, in the same directory; a crash may leave a file of such a name.
func Write(path, pattern string, fill func(f *os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// WriteFile writes bytes as Write does.
func WriteFile(path string, b []byte) error {
	return Write(path, filepath.Base(path)+".*.tmp", func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// MakeDir makes a directory, and those above it that are missing, for their owner only.
func MakeDir(dir string) error {
	var changed []string // directories that get a new name
	for d := dir; !exists(d) && d != filepath.Dir(d); {
		d = filepath.Dir(d)
		changed = append(changed, d)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range changed {
		if err := SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// SyncDir syncs the names in a directory.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
