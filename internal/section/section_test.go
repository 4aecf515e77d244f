package section

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replace(page, "x", "new\n"); err != nil {
		t.Fatal(err)
	}
	const want = "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n"
	if err := Replace(page, "y", ""); err == nil || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("a section that is not there: %v", err)
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
