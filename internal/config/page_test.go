package config_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
)

var update = flag.Bool("update", false, "rewrite docs/config.md")

// TestPageIsCurrent compares docs/config.md with the keys; go test ./internal/config -update rewrites it.
func TestPageIsCurrent(t *testing.T) {
	const path = "../../docs/config.md"
	if *update {
		if err := os.WriteFile(path, config.Page(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, config.Page()) {
		t.Errorf("%s is not current: go test ./internal/config -update", path)
	}
}
