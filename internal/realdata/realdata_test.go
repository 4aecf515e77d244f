package realdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindFolder: without the variable the folder is beside the repository, wherever in it the test runs.
func TestFindFolder(t *testing.T) {
	t.Setenv(variable, "")
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(filepath.Dir(root), "shared", "data", "x.npz")
	for _, dir := range []string{root, filepath.Join(root, "calib"), filepath.Join(root, "calib", "metric")} {
		t.Chdir(dir)
		if got, ok := Find("x.npz"); got != want || ok {
			t.Errorf("in %s: %s, %v; want %s, which is not there", dir, got, ok, want)
		}
	}
	set := t.TempDir()
	if err := os.WriteFile(filepath.Join(set, "x.npz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, set)
	if got, ok := Find("x.npz"); got != filepath.Join(set, "x.npz") || !ok {
		t.Errorf("%s, %v; want that of the folder that is set", got, ok)
	}
}

// ended is a test of which only the end is looked at.
type ended struct {
	testing.TB
	skipped, failed bool
	text            string
}

func (e *ended) Helper()                   {}
func (e *ended) Skipf(f string, a ...any)  { e.end(&e.skipped, f, a) }
func (e *ended) Fatalf(f string, a ...any) { e.end(&e.failed, f, a) }
func (e *ended) end(how *bool, format string, args []any) {
	*how, e.text = true, format
	for _, a := range args {
		e.text += " " + a.(string)
	}
	panic(e)
}

// TestAbsentFile: a test without its file is skipped, and fails where the data was said to be there; both name the
// file.
func TestAbsentFile(t *testing.T) {
	for _, c := range []struct {
		set             string
		skipped, failed bool
	}{{"", true, false}, {t.TempDir(), false, true}} {
		t.Setenv(variable, c.set)
		e := &ended{TB: t}
		func() {
			defer func() { _ = recover() }()
			File(e, "no such file.npz")
		}()
		if e.skipped != c.skipped || e.failed != c.failed || !strings.Contains(e.text, "no such file.npz") {
			t.Errorf("with %q set: skipped %v, failed %v, %q", c.set, e.skipped, e.failed, e.text)
		}
	}
}
