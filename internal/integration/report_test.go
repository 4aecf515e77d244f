//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// writeSection replaces what stands between the markers of a section of docs/benchmarks.md, if PLUMBLINE_DOCS=1.
func writeSection(t *testing.T, name, text string) {
	t.Helper()
	if os.Getenv("PLUMBLINE_DOCS") != "1" {
		return
	}
	path := filepath.Join(root, "docs", "benchmarks.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
	head, rest, ok := bytes.Cut(doc, begin)
	if !ok {
		t.Fatalf("%s: no marker %q", path, begin)
	}
	_, foot, ok := bytes.Cut(rest, end)
	if !ok {
		t.Fatalf("%s: no marker %q", path, end)
	}
	doc = bytes.Join([][]byte{head, begin, []byte(text), end, foot}, nil)
	if err := os.WriteFile(path, doc, 0o644); err != nil {
		t.Fatal(err)
	}
}
