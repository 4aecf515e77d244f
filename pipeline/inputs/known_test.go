package inputs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFormatsAreKnown: every format is described, has an example and is fuzzed, except arrow, which needs none. Formats
// with schemas are fuzzed under those of their tests.
func TestFormatsAreKnown(t *testing.T) {
	schema, err := os.ReadFile("../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	var table string
	for line := range strings.Lines(string(schema)) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			table += cell
		}
	}
	examples := ""
	files, err := filepath.Glob("../../examples/config/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	for _, name := range formatNames() {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/schema.md: no line for `%s` in the table of formats", name)
		}
		if name != formatArrow && !strings.Contains(examples, "format: "+name+"\n") {
			t.Errorf("examples/config: no file has an input with format: %s", name)
		}
		var mappings []Config
		for _, m := range fuzzed {
			mappings = append(mappings, m...)
		}
		if name != formatArrow && !formats[name].registered &&
			!slices.ContainsFunc(mappings, func(c Config) bool { return c.Format == name }) {
			t.Errorf("fuzz_test.go: fuzzed has no mapping of %s", name)
		}
	}
}
