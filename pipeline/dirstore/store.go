package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline"
)

const (
	checkpointPrefix = "checkpoint-"
	journalPrefix    = "journal-"
	tempSuffix       = ".tmp"
)

// Store keeps checkpoints below a directory. It implements pipeline.CheckpointStore.
type Store struct {
	Dir  string
	Keep int // at least 2: a damaged newest one falls back to the one before

	files  dirFiles
	linked func() // tests: between the links of a checkpoint and of its journal
}

// Save implements pipeline.CheckpointStore.
func (s *Store) Save(_ context.Context, key string, number uint64, c pipeline.Checkpoint) error {
	dir := filepath.Join(s.Dir, key)
	if err := durable.MakeDir(dir); err != nil {
		return err
	}
	if err := newest(dir, number-1); err != nil {
		return err
	}
	if err := s.files.put(dir, c.Files); err != nil {
		return err
	}
	if err := s.write(dir, number, c); err != nil {
		return err
	}
	s.files.noted(filepath.Join(dir, checkpointName(number)), c.Files)
	// Between the look and the link this process may have been away for so long that the number was written and
	// removed again by others.
	if err := newest(dir, number); err != nil {
		return err
	}
	old, err := numbers(dir)
	if err != nil {
		return err
	}
	keep := c.Kept(old, max(s.Keep, 2))
	s.files.prune(dir, old[:keep], old[keep:])
	return nil
}

// write gives a checkpoint and its journal their names.
func (s *Store) write(dir string, number uint64, c pipeline.Checkpoint) error {
	journal := ""
	if c.Journal != nil {
		var err error
		journal, err = writeTemp(dir, journalName(number), c.Journal)
		defer func() { _ = os.Remove(journal) }()
		if err != nil {
			return err
		}
	}
	data, err := writeTemp(dir, checkpointName(number), c.Data)
	defer func() { _ = os.Remove(data) }()
	if err != nil {
		return err
	}
	if err := c.Prepared(); err != nil {
		return err
	}
	if err := link(data, dir, checkpointName(number)); err != nil {
		return err
	}
	if s.linked != nil {
		s.linked()
	}
	if c.Journal != nil {
		if err := link(journal, dir, journalName(number)); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}

func checkpointName(n uint64) string { return fmt.Sprintf("%s%020d", checkpointPrefix, n) }

func journalName(n uint64) string { return fmt.Sprintf("%s%020d", journalPrefix, n) }

// newest returns pipeline.ErrFenced where there is a checkpoint beyond number.
func newest(dir string, number uint64) error {
	ns, err := numbers(dir)
	if err != nil {
		return err
	}
	if len(ns) > 0 && ns[0] > number {
		return fmt.Errorf("%w: it wrote checkpoint %d", pipeline.ErrFenced, ns[0])
	}
	return nil
}

// Holds implements pipeline.CheckpointStore.
func (s *Store) Holds(_ context.Context, key string, number uint64) error {
	return newest(filepath.Join(s.Dir, key), number)
}

// Lost implements pipeline.CheckpointStore: a directory that somebody has emptied refuses the next checkpoint.
func (s *Store) Lost(string) bool { return false }

// Load lists the checkpoints of key, newest first.
func (s *Store) Load(_ context.Context, key string) ([]pipeline.Stored, error) {
	dir := filepath.Join(s.Dir, key)
	removeStale(dir)
	ns, err := numbers(dir)
	if err != nil {
		return nil, err
	}
	s.files.loaded(dir)
	s.files.sweep(dir, ns)
	fetch := func(name, path string) error { return fetchFile(dir, name, path) }
	var out []pipeline.Stored
	for _, n := range ns {
		name := filepath.Join(dir, checkpointName(n))
		out = append(out, pipeline.Stored{
			Name:    name,
			Number:  n,
			Read:    func() ([]byte, error) { return os.ReadFile(name) },
			Fetch:   fetch,
			Journal: func() ([]byte, error) { return readJournal(dir, n) },
		})
	}
	return out, nil
}

// readJournal reads the journal of a checkpoint. A journal is first written under a temporary name. If it has no other
// name and there is one such file, that file is the journal. If there are several, all but one are of processes that
// lost the number, and they cannot be told apart.
func readJournal(dir string, n uint64) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, journalName(n)))
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	es, listErr := os.ReadDir(dir)
	left := slices.DeleteFunc(es, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), journalName(n)+"-") || !strings.HasSuffix(e.Name(), tempSuffix)
	})
	if listErr != nil || len(left) != 1 {
		return nil, errors.Join(fmt.Errorf("%w, and %d files of temporary names", err, len(left)), listErr)
	}
	return os.ReadFile(filepath.Join(dir, left[0].Name()))
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

// staleAfter is the age from which a temporary file is a crash's: another process may be writing a younger one.
const staleAfter = time.Hour

func removeStale(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix))
	if err != nil {
		return
	}
	for _, f := range left {
		if st, err := os.Stat(f); err == nil && time.Since(st.ModTime()) > staleAfter {
			_ = os.Remove(f)
		}
	}
}

// writeTemp writes a file under a temporary name and returns that, "" where there is none.
func writeTemp(dir, name string, data []byte) (tmp string, err error) {
	f, err := os.CreateTemp(dir, name+"-*"+tempSuffix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}

// link gives a file the name, unless there is a file of that name: then the error is pipeline.ErrFenced.
func link(tmp, dir, name string) error {
	err := os.Link(tmp, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it wrote %s", pipeline.ErrFenced, name)
	}
	return err
}
