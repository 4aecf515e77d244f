package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// place is a deployment with two checkpoints, a work directory and a history.
func place(t *testing.T) Place {
	t.Helper()
	dir := t.TempDir()
	p := Place{Group: "g", State: dir, Skip: filepath.Join(dir, "work"), History: filepath.Join(dir, "work", "h.db")}
	for name, text := range map[string]string{"g/shards/0/checkpoint-1": "one", "g/models/0/checkpoint-7": "seven",
		"work/rows": "rows"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := bbolt.Open(p.History, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

func elsewhere(t *testing.T) Place {
	dir := t.TempDir()
	return Place{Group: "g", State: filepath.Join(dir, "new"), History: filepath.Join(dir, "new", "work", "h.db")}
}

func anyFormat(string, []byte) error { return nil }

// TestBackupOfAnotherBuild: a copy of which this build can read no checkpoint of a task is refused, and nothing is
// written; one that it can read is enough for a task.
func TestBackupOfAnotherBuild(t *testing.T) {
	p := place(t)
	if err := os.WriteFile(filepath.Join(p.State, "g/shards/0/checkpoint-2"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.tar.gz")
	file, err := os.Create(path)
	if err == nil {
		_, err = Create(file, p, "plumbline 0.9")
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	refusing := func(refused ...string) func(string, []byte) error {
		return func(stage string, data []byte) error {
			asked[string(data)] = stage
			if slices.Contains(refused, string(data)) {
				return errors.New("other format")
			}
			return nil
		}
	}
	to := elsewhere(t)
	_, err = Restore(path, to, refusing("one", "two"))
	if err == nil || !strings.Contains(err.Error(), "state/g/shards/0/: other format") ||
		!strings.Contains(err.Error(), "plumbline 0.9") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(to.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if asked["one"] != "shards" || asked["seven"] != "models" {
		t.Errorf("asked for %v", asked)
	}
	if _, err := Restore(path, to, refusing("one")); err != nil {
		t.Error(err)
	}
}

func TestBackupComesBack(t *testing.T) {
	var copied bytes.Buffer
	m, err := Create(&copied, place(t), "plumbline test")
	if err != nil || len(m.Files) != 3 {
		t.Fatalf("got %+v, %v", m, err)
	}
	path := filepath.Join(t.TempDir(), "copy.tar.gz")
	if err := os.WriteFile(path, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	to := elsewhere(t)
	if _, err := Restore(path, to, anyFormat); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to.State, "g/models/0/checkpoint-7"))
	if err != nil || string(text) != "seven" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to.State, "work", "rows")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the work directory came along: %v", err)
	}
	if db, err := bbolt.Open(to.History, 0o600, nil); err != nil {
		t.Error(err)
	} else if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Restore(path, to, anyFormat); err == nil || !strings.Contains(err.Error(), "must be empty") {
		t.Errorf("over a state: got %v", err)
	}
	other := elsewhere(t)
	other.Group = "h"
	if _, err := Restore(path, other, anyFormat); err == nil || !strings.Contains(err.Error(), `is of group "g"`) {
		t.Errorf("of another group: got %v", err)
	}
}

// TestDamagedBackupIsRefused: whatever byte is flipped or cut, nothing is written.
func TestDamagedBackupIsRefused(t *testing.T) {
	var copied bytes.Buffer
	if _, err := Create(&copied, place(t), "plumbline test"); err != nil {
		t.Fatal(err)
	}
	path, n := filepath.Join(t.TempDir(), "copy.tar.gz"), copied.Len()
	for _, data := range [][]byte{nil, copied.Bytes()[:n/2], copied.Bytes()[:n-9], flipped(copied.Bytes(), n/2),
		flipped(copied.Bytes(), n-6), []byte("no copy")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		to := elsewhere(t)
		if _, err := Restore(path, to, anyFormat); err == nil {
			t.Errorf("%d bytes: it was restored", len(data))
		}
		if _, err := os.Stat(to.State); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d bytes: something was written", len(data))
		}
	}
}

func flipped(data []byte, at int) []byte {
	out := bytes.Clone(data)
	out[at] ^= 1
	return out
}

// changing is a writer that changes the state while it is copied.
type changing struct {
	then func()
	bytes.Buffer
}

func (c *changing) Write(p []byte) (int, error) {
	c.then()
	return c.Buffer.Write(p)
}

func TestBackupOfAMovingStateIsRefused(t *testing.T) {
	p := place(t)
	newer := filepath.Join(p.State, "g/shards/0/checkpoint-2")
	for name, then := range map[string]func() error{
		"a new file": func() error { return os.WriteFile(newer, []byte("two"), 0o600) },
		"a file gone": func() error {
			return errors.Join(os.RemoveAll(newer), os.RemoveAll(filepath.Join(p.State, "g/models")))
		},
	} {
		out := &changing{then: func() {
			if err := then(); err != nil {
				t.Fatal(err)
			}
		}}
		if _, err := Create(out, p, ""); !errors.Is(err, errMoved) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Create(new(bytes.Buffer), elsewhere(t), ""); err == nil {
		t.Error("a directory that is not there was copied")
	}
}
