package config

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs and examples")

// TestGeneratedFilesAreCurrent holds what is generated from the configuration against the files in the tree;
// go test ./internal/config -update rewrites them.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	check := func(path string, want []byte) {
		t.Helper()
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not current: go test ./internal/config -update", path)
		}
	}
	check("../../examples/config/default.yaml", Example())

	const page = "../../docs/operations.md"
	begin, end := []byte("<!-- begin configuration reference -->\n"), []byte("<!-- end configuration reference -->\n")
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(doc, begin)
	_, tail, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks around the configuration reference", page)
	}
	check(page, bytes.Join([][]byte{head, begin, Reference(), end, tail}, nil))
}
