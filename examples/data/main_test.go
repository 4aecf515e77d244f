package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestFilesAreThoseOfTheCommand: what lies here is what the command writes.
func TestFilesAreThoseOfTheCommand(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the network is trained in float64: other processors may round otherwise")
	}
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is another file (%v): go run ./examples/data", f.Name(), err)
		}
	}
}
