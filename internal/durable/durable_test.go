package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// names are those in a directory.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("no room")
	err := Write(path, "part-*", func(f *os.File) error {
		if _, err := f.WriteString("thr"); err != nil {
			t.Fatal(err)
		}
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "two" {
		t.Errorf("file %q, error %v, want what was there before", b, err)
	}
	if err := WriteFile(dir, nil); err == nil {
		t.Error("a file took the name of a directory")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory has %q, want the file alone", got)
	}
	if got := names(t, filepath.Dir(dir)); len(got) != 1 {
		t.Errorf("the directory above has %q, want the directory alone", got)
	}
}

func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		t.Fatalf("no directory: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := WriteFile(file, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := MakeDir(path); err == nil {
			t.Errorf("%s: made where a file is", path)
		}
	}
}
