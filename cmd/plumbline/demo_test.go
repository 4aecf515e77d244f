package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestDemoUsage(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--for", "19s"}, {"--for", "2h"}, {"--seed", "-1"}, {"--dir", full}, {"-c", "x.yaml"}, {"x"},
		{"--listen", "8080"},
	} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), append([]string{"demo"}, args...), io.Discard, &stderr); code != exitUsage {
			t.Errorf("demo %q: got exit code %d, want %d; stderr %s", args, code, exitUsage, &stderr)
		}
	}
}
