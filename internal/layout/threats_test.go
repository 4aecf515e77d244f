package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test\\w+)(?:/([a-z-]+))?`")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	scenario = regexp.MustCompile(`hostile\["([a-z-]+)"\]`)
)

// TestThreatsHaveTests: each line of the table of threats in docs/operations.md names the tests of what it says, and
// they exist.
func TestThreatsHaveTests(t *testing.T) {
	known := map[string]bool{}
	for _, file := range goFiles(t) {
		if !file.test {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(file.src), -1) {
			known[m[1]] = true
		}
		for _, m := range scenario.FindAllStringSubmatch(string(file.src), -1) {
			known["TestHostile/"+m[1]] = true
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| party | can | cannot | tests |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !ok || strings.Count(table, "\n") < 7 {
		t.Fatalf("no table of threats: %q", table)
	}
	for line := range strings.Lines(table) {
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test for %q", line)
		}
		for _, m := range names {
			name := m[1]
			if m[2] != "" {
				name += "/" + m[2]
			}
			if !known[name] {
				t.Errorf("there is no %s, which is the test of %q", name, line)
			}
		}
	}
}
