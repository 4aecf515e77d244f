package dirstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

// blob is a state that is its bytes.
type blob struct{ b []byte }

func (s *blob) AppendState(dst []byte) ([]byte, error) { return append(dst, s.b...), nil }

func (s *blob) RestoreState(src []byte) error {
	s.b = bytes.Clone(src)
	return nil
}

// withFiles is a checkpoint that refers to files with these contents.
func withFiles(t *testing.T, contents ...string) pipeline.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	st := &fileBlob{}
	for _, c := range contents {
		sum := sha256.Sum256([]byte(c))
		f := pipeline.File{Name: hex.EncodeToString(sum[:]), Bytes: int64(len(c))}
		f.Path = filepath.Join(dir, f.Name)
		if err := os.WriteFile(f.Path, []byte(c), 0o644); err != nil {
			t.Fatal(err)
		}
		st.files = append(st.files, f)
	}
	c, err := pipeline.EncodeCheckpoint([]pipeline.Section{{Name: "s", State: st, Files: st}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fileBlob is a state that is its files.
type fileBlob struct {
	blob
	files []pipeline.File
	got   []string
}

func (s *fileBlob) Files() []pipeline.File { return s.files }

func (s *fileBlob) RestoreFiles(src []byte, fetch pipeline.Fetch) error {
	for _, f := range s.files {
		path := f.Path + "-fetched"
		if err := fetch(f.Name, path); err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.got = append(s.got, string(b))
	}
	return s.RestoreState(src)
}

// kept are the contents of the files in a key's directory, sorted.
func kept(t *testing.T, s *Store, key string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.Dir, key, filesDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestFetchOverALinkToTheKeptFile: what is there may be the kept file itself under another name.
func TestFetchOverALinkToTheKeptFile(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Keep: 2}
	c := withFiles(t, "a")
	if err := s.Save(t.Context(), "k", 1, c); err != nil {
		t.Fatal(err)
	}
	found, err := s.Load(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "fetched")
	for range 2 {
		if err := found[0].Fetch(c.Files[0].Name, to); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(to); string(b) != "a" || err != nil {
			t.Errorf("fetched %q, %v", b, err)
		}
	}
	if got := kept(t, s, "k"); got != "a" {
		t.Errorf("kept %q", got)
	}
	if left, _ := filepath.Glob(to + "*"); len(left) != 1 {
		t.Errorf("left %q", left)
	}
}

func TestStoreFiles(t *testing.T) {
	ctx := context.Background()
	s := &Store{Dir: t.TempDir(), Keep: 2}
	for i, step := range []struct {
		files []string
		want  string
	}{
		{[]string{"a", "b"}, "a b"}, {[]string{"b", "c"}, "a b c"}, {[]string{"c", "d"}, "b c d"}, {nil, "c d"},
		{nil, ""}, {[]string{"a"}, "a"},
	} {
		if err := s.Save(ctx, "k", uint64(i+1), withFiles(t, step.files...)); err != nil {
			t.Fatal(err)
		}
		if got := kept(t, s, "k"); got != step.want {
			t.Errorf("checkpoint %d: files %s, want %s", i+1, got, step.want)
		}
		if i%2 == 1 { // another process goes on
			s = &Store{Dir: s.Dir, Keep: 2}
		}
	}
	stored, err := s.Load(ctx, "k")
	if err != nil || len(stored) != 2 {
		t.Fatalf("%d checkpoints, %v", len(stored), err)
	}
	data, err := stored[0].Read()
	if err != nil {
		t.Fatal(err)
	}
	st := &fileBlob{files: withFiles(t, "a").Files}
	if err := pipeline.RestoreCheckpoint(data, []pipeline.Section{{Name: "s", State: st, Files: st}},
		stored[0].Fetch); err != nil || !slices.Equal(st.got, []string{"a"}) {
		t.Errorf("restored files %q, %v, want a", st.got, err)
	}
	info, err := pipeline.InspectCheckpoint(data)
	if err != nil || len(info.Files) != 1 || info.Files[0].Bytes != 1 {
		t.Errorf("inspect: %+v, %v, want one file of one byte", info, err)
	}
	if err := stored[0].Fetch("nothing", filepath.Join(t.TempDir(), "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("fetch what is not there: %v", err)
	}
}

// TestStoreReplacesDamagedFiles: a process does not trust what it has not written.
func TestStoreReplacesDamagedFiles(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	c := withFiles(t, "whole")
	if err := (&Store{Dir: dir, Keep: 2}).Save(ctx, "k", 1, c); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "k", filesDir, c.Files[0].Name)
	if err := errors.Join(os.Remove(name), os.WriteFile(name, []byte("whale"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: dir, Keep: 2}
	if err := s.Save(ctx, "k", 2, c); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, s, "k"); got != "whole" {
		t.Errorf("kept %q, want the whole file again and no temporary one", got)
	}
}

// TestFencedStoreLeavesFiles: who has lost a number removes nothing that the winner refers to, or is about to.
func TestFencedStoreLeavesFiles(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	one, two := &Store{Dir: dir, Keep: 2}, &Store{Dir: dir, Keep: 2}
	if err := one.Save(ctx, "k", 1, withFiles(t, "a")); err != nil {
		t.Fatal(err)
	}
	for n, files := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "d"}} {
		if err := two.Save(ctx, "k", uint64(n+2), withFiles(t, files...)); err != nil {
			t.Fatal(err)
		}
	}
	// its next checkpoint begins
	if err := two.files.put(filepath.Join(dir, "k"), withFiles(t, "d", "e").Files); err != nil {
		t.Fatal(err)
	}
	if err := one.Save(ctx, "k", 2, withFiles(t, "a", "z")); !errors.Is(err, pipeline.ErrFenced) {
		t.Fatalf("got %v, want ErrFenced", err)
	}
	if got := kept(t, one, "k"); got != "b c d e" {
		t.Errorf("files %s, want b c d e", got)
	}
	if _, err := two.Load(ctx, "k"); err != nil || kept(t, two, "k") != "b c d e" {
		t.Errorf("files %s after Load, %v", kept(t, two, "k"), err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "k", filesDir, "*"))
	age(t, names...)
	if _, err := two.Load(ctx, "k"); err != nil || kept(t, two, "k") != "b c d" {
		t.Errorf("files %s, %v, want what a process left before its checkpoint to go after a while",
			kept(t, two, "k"), err)
	}
}

// TestSweepBeforeALateCheckpoint: what a process needs for a checkpoint that it could not write for long, and another
// took for left behind, is there when it can write it. The files of its state may be as old.
func TestSweepBeforeALateCheckpoint(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	one, other := &Store{Dir: dir, Keep: 2}, &Store{Dir: dir, Keep: 2}
	aged := func(contents ...string) pipeline.Checkpoint {
		c := withFiles(t, contents...)
		for _, f := range c.Files {
			age(t, f.Path)
		}
		return c
	}
	if err := one.Save(ctx, "k", 1, aged("a")); err != nil {
		t.Fatal(err)
	}
	c := aged("a", "b")
	full := errors.New("disk full")
	c.Ready = func() error { return full }
	if err := one.Save(ctx, "k", 2, c); !errors.Is(err, full) {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "k", filesDir, "*"))
	age(t, names...)
	if _, err := other.Load(ctx, "k"); err != nil || kept(t, one, "k") != "a" {
		t.Fatalf("kept %q, %v", kept(t, one, "k"), err)
	}
	c = aged("a", "b", "c")
	c.Ready = func() error {
		_, err := other.Load(ctx, "k")
		return err
	}
	if err := one.Save(ctx, "k", 2, c); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, one, "k"); got != "a b c" {
		t.Errorf("the checkpoint is written with files %q, want a b c", got)
	}
}

// TestFilesAfterOthersHadTheTask: a process that gets a task back puts again what others have removed meanwhile.
func TestFilesAfterOthersHadTheTask(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	one, other := &Store{Dir: dir, Keep: 2}, &Store{Dir: dir, Keep: 2}
	for i, s := range []*Store{one, other, other} {
		files := []string{"b"}
		if s == one {
			files = []string{"a"}
		}
		if err := s.Save(ctx, "k", uint64(i+1), withFiles(t, files...)); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept(t, one, "k"); got != "b" {
		t.Fatalf("kept %q", got)
	}
	if _, err := one.Load(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	if err := one.Save(ctx, "k", 4, withFiles(t, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, one, "k"); got != "a b" {
		t.Errorf("the checkpoint is written with files %q, want a b", got)
	}
}

// age lets files look long left.
func age(t *testing.T, names ...string) {
	t.Helper()
	old := time.Now().Add(-2 * staleAfter)
	for _, n := range names {
		if err := os.Chtimes(n, old, old); err != nil {
			t.Fatal(err)
		}
	}
}
