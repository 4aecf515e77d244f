package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestOpen: the system gives a lock to one open file at a time, so one process can stand for two.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrHeld) {
		t.Errorf("the second: %v, want ErrHeld", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	_ = again.Close()
	if _, err := Open(filepath.Join(path, "x")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a file in no directory: %v, want another error", err)
	}
}

func TestTake(t *testing.T) {
	f, err := Create(t.TempDir(), "a-*.lock")
	if err != nil {
		t.Fatal(err)
	}
	if Take(f.Name()) != nil {
		t.Error("taken while its process lives")
	}
	if err := f.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	taken := Take(f.Name())
	if taken == nil {
		t.Fatal("not taken after its process ended")
	}
	if Take(f.Name()) != nil {
		t.Error("taken twice")
	}
	_ = os.Remove(taken.Name())
	_ = taken.Close()
	if Take(f.Name()) != nil {
		t.Error("taken after it was removed")
	}
}

// TestCreateBesideTakers: what Create returns is not removed by processes that look for files of dead ones, which may
// come upon it before it is locked.
func TestCreateBesideTakers(t *testing.T) {
	dir := t.TempDir()
	var takers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		takers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					if f := Take(filepath.Join(dir, e.Name())); f != nil {
						_ = os.Remove(f.Name())
						_ = f.Close()
					}
				}
			}
		})
	}
	for range 3000 {
		f, err := Create(dir, "a-*")
		if err != nil {
			t.Fatal(err)
		}
		if !stillNamed(f) {
			t.Errorf("%s was removed", f.Name())
		}
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
	close(done)
	takers.Wait()
}
