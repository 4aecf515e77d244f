package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

func TestStore(t *testing.T) {
	ctx := context.Background()
	s := &Store{Dir: t.TempDir(), Keep: 3}
	load := func() []string {
		t.Helper()
		stored, err := s.Load(ctx, "g/shard-1")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, st := range stored {
			b, err := st.Read()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		return out
	}
	if got := load(); len(got) != 0 {
		t.Fatalf("empty store has %q", got)
	}
	for i := range 12 {
		if err := s.Save(ctx, "g/shard-1", uint64(i+1), pipeline.Checkpoint{Data: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(load(), " "); got != "11 10 9" {
		t.Errorf("kept %q, want the three newest, newest first", got)
	}
	if other, err := s.Load(ctx, "g/shard-2"); err != nil || len(other) != 0 {
		t.Errorf("another key has %d checkpoints, %v", len(other), err)
	}
	dir := filepath.Join(s.Dir, "g", "shard-1")
	for _, name := range []string{"checkpoint-00000000000000000099.tmp", "notes.txt", "checkpoint-x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("torn"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(load(), " "); got != "11 10 9" {
		t.Errorf("with leftovers: %q", got)
	}
	torn := filepath.Join(dir, "checkpoint-00000000000000000099.tmp")
	if _, err := os.Stat(torn); err != nil {
		t.Errorf("a temporary file that somebody may be writing: %v", err)
	}
	old := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(torn, old, old); err != nil {
		t.Fatal(err)
	}
	load()
	if _, err := os.Stat(torn); !os.IsNotExist(err) {
		t.Errorf("the torn file is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("a file that is none of ours: %v", err)
	}
	s.Keep = 1 // a single one could not fall back
	if err := s.Save(ctx, "g/shard-1", 13, pipeline.Checkpoint{Data: []byte("12")}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(load(), " "); got != "12 11" {
		t.Errorf("kept %q, want two", got)
	}
}

// TestStoreFences has two processes at one task: who writes a number first goes on, the other gets an error.
func TestStoreFences(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	one, two := &Store{Dir: dir, Keep: 2}, &Store{Dir: dir, Keep: 2}
	save := func(s *Store, n uint64, data string) error {
		return s.Save(ctx, "k", n, pipeline.Checkpoint{Data: []byte(data)})
	}
	if err := save(one, 1, "one"); err != nil {
		t.Fatal(err)
	}
	if err := save(two, 2, "two"); err != nil {
		t.Fatal(err)
	}
	if err := one.Holds(ctx, "k", 1); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("after another's checkpoint: got %v, want ErrFenced", err)
	}
	if err := two.Holds(ctx, "k", 2); err != nil {
		t.Errorf("the newest is its own: %v", err)
	}
	if err := save(one, 2, "late"); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("the same number twice: got %v, want ErrFenced", err)
	}
	for n := uint64(3); n <= 9; n++ { // 2 is removed meanwhile
		if err := save(two, n, "two"); err != nil {
			t.Fatal(err)
		}
	}
	if err := save(one, 2, "late"); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("a number that is gone: got %v, want ErrFenced", err)
	}
	stored, err := one.Load(ctx, "k")
	if err != nil || len(stored) != 2 || stored[0].Number != 9 || stored[1].Number != 8 {
		t.Errorf("got %v, %v, want checkpoints 9 and 8", stored, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "k", "*"+tempSuffix)); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// TestStoreOneWriterANumber races writers for the same numbers.
func TestStoreOneWriterANumber(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for n := uint64(1); n <= 20; n++ {
		var wins atomic.Int32
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				err := (&Store{Dir: dir, Keep: 2}).Save(ctx, "k", n, pipeline.Checkpoint{Data: fmt.Append(nil, w)})
				switch {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, pipeline.ErrFenced):
					t.Errorf("number %d: %v", n, err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("number %d has %d writers", n, wins.Load())
		}
	}
}

func TestStoreReportsWhatFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&Store{Dir: filepath.Join(dir, "file")}).Save(context.Background(), "k", 1,
		pipeline.Checkpoint{Data: []byte("x")}); err == nil {
		t.Error("saved below a file")
	}
}

// TestEndedBetweenCheckpointAndJournal: a process may end when its checkpoint has a name and the journal has none.
func TestEndedBetweenCheckpointAndJournal(t *testing.T) {
	var copies []string
	store := &Store{Dir: t.TempDir(), Keep: 2}
	dir := t.TempDir()
	store.linked = func() { // what is there when the process ends here
		to := filepath.Join(dir, fmt.Sprint(len(copies)))
		if err := os.CopyFS(to, os.DirFS(store.Dir)); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	for n := range uint64(2) {
		if err := store.Save(t.Context(), "g/task", n+1, pipeline.Checkpoint{Data: []byte{byte(n)},
			Journal: fmt.Appendf(nil, "journal %d", n+1)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, to := range append(copies, store.Dir) {
		stored, err := (&Store{Dir: to, Keep: 2}).Load(t.Context(), "g/task")
		if err != nil || len(stored) != min(i+1, 2) {
			t.Fatalf("copy %d: %d checkpoints, %v", i, len(stored), err)
		}
		for _, s := range stored {
			if got, err := s.Journal(); err != nil || string(got) != fmt.Sprintf("journal %d", s.Number) {
				t.Errorf("copy %d: journal of checkpoint %d is %q, %v", i, s.Number, got, err)
			}
		}
	}
	// Another had the number in mind and ended as well: which of the two is the journal cannot be known.
	other := filepath.Join(copies[0], "g", "task", journalName(1)+"-9"+tempSuffix)
	if err := os.WriteFile(other, []byte("journal 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	stored, err := (&Store{Dir: copies[0], Keep: 2}).Load(t.Context(), "g/task")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stored[0].Journal(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of two journals: got %q, %v", got, err)
	}
}

// TestReadyComesBeforeTheName: when the outputs are written, every byte of the checkpoint is in a file, and the
// checkpoint does not count yet; it never does where they cannot be written.
func TestReadyComesBeforeTheName(t *testing.T) {
	ctx := context.Background()
	s := &Store{Dir: t.TempDir(), Keep: 2}
	var bytes int64
	c := pipeline.Checkpoint{Data: make([]byte, 1000), Journal: make([]byte, 100)}
	c.Ready = func() error {
		if stored, err := s.Load(ctx, "k"); err != nil || len(stored) > 0 {
			t.Errorf("%d checkpoints count, %v", len(stored), err)
		}
		es, err := os.ReadDir(filepath.Join(s.Dir, "k"))
		for _, e := range es {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return errors.Join(err, errors.New("no broker"))
	}
	if err := s.Save(ctx, "k", 1, c); err == nil || err.Error() != "no broker" || bytes < 1100 {
		t.Errorf("got %v, %d bytes were there", err, bytes)
	}
	if left, err := filepath.Glob(filepath.Join(s.Dir, "k", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
