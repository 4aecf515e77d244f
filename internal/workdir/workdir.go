package workdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/internal/filelock"
)

// lockSuffix ends the name of the file beside a work directory whose lock says that its process lives.
const lockSuffix = ".lock"

// Dir is a directory for the files of one task's state.
type Dir struct {
	path string
	lock *os.File
}

// New makes a directory in base whose name begins with prefix, and removes those of the same prefix whose processes are
// gone.
func New(base, prefix string) (*Dir, error) {
	if base == "" {
		return nil, fmt.Errorf("work directory: none is configured")
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	removeDead(base, prefix)
	lock, err := filelock.Create(base, prefix+"-*"+lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	w := &Dir{path: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
	if err := os.Mkdir(w.path, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	return w, nil
}

// removeDead removes the directories that nobody has locked. What cannot be removed is left for the next one.
func removeDead(base, prefix string) {
	locks, err := filepath.Glob(filepath.Join(base, prefix+"-*"+lockSuffix))
	if err != nil {
		return
	}
	for _, name := range locks {
		f := filelock.Take(name)
		if f == nil {
			continue
		}
		if os.RemoveAll(strings.TrimSuffix(name, lockSuffix)) == nil {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
}

// Path is where the directory is.
func (w *Dir) Path() string { return w.path }

// Remove removes the directory with everything in it.
func (w *Dir) Remove() error {
	err := os.RemoveAll(w.path)
	if e := os.Remove(w.lock.Name()); err == nil {
		err = e
	}
	if e := w.lock.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	return nil
}
