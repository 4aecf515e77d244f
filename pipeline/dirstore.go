package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	checkpointPrefix = "checkpoint-"
	tempSuffix       = ".tmp"
)

// DirStore keeps checkpoints as files DIR/KEY/checkpoint-<n>: temporary file, fsync, rename, fsync of the
// directory. The Keep newest stay.
type DirStore struct {
	Dir  string
	Keep int // at least 2: a damaged newest one falls back to the one before
}

// Save writes the next checkpoint of key.
func (s *DirStore) Save(_ context.Context, key string, data []byte) error {
	dir := filepath.Join(s.Dir, key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := numbers(dir)
	if err != nil {
		return err
	}
	next := uint64(1)
	if len(old) > 0 {
		next = old[0] + 1
	}
	if err := writeDurably(dir, fmt.Sprintf("%s%020d", checkpointPrefix, next), data); err != nil {
		return fmt.Errorf("save checkpoint %d of %s: %w", next, key, err)
	}
	for i, n := range old {
		if i+1 >= max(s.Keep, 2) {
			// Leftovers are harmless: an error here must not fail a checkpoint that is already durable.
			_ = os.Remove(filepath.Join(dir, fmt.Sprintf("%s%020d", checkpointPrefix, n)))
		}
	}
	return nil
}

// Load lists the checkpoints of key, newest first, and removes temporary files that a crash left.
func (s *DirStore) Load(_ context.Context, key string) ([]Stored, error) {
	dir := filepath.Join(s.Dir, key)
	if left, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix)); err == nil {
		for _, f := range left {
			_ = os.Remove(f)
		}
	}
	ns, err := numbers(dir)
	if err != nil {
		return nil, err
	}
	var out []Stored
	for _, n := range ns {
		name := filepath.Join(dir, fmt.Sprintf("%s%020d", checkpointPrefix, n))
		out = append(out, Stored{Name: name, Read: func() ([]byte, error) { return os.ReadFile(name) }})
	}
	return out, nil
}

// numbers lists the checkpoint numbers in dir, newest first.
func numbers(dir string) ([]uint64, error) {
	es, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range es {
		digits, ok := strings.CutPrefix(e.Name(), checkpointPrefix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}

func writeDurably(dir, name string, data []byte) error {
	tmp := filepath.Join(dir, name+tempSuffix)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
