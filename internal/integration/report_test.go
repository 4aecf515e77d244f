//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/internal/section"
)

// writeSection replaces what stands between the markers of bench/results/NAME.md, if PLUMBLINE_DOCS=1.
func writeSection(t *testing.T, name, text string) {
	t.Helper()
	if os.Getenv("PLUMBLINE_DOCS") != "1" {
		return
	}
	if err := section.Replace(filepath.Join(root, "bench", "results", name+".md"), name, text); err != nil {
		t.Fatal(err)
	}
}
