package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/buildinfo"
)

// runCommand runs one command line as main would.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodesAndMessages(t *testing.T) {
	bad := writeFile(t, "bad.yaml", "stats: {bins: 7}\n")
	for _, c := range []struct {
		args   []string
		code   int
		stderr string // a part of it
	}{
		{[]string{"version"}, exitDone, ""},
		{[]string{"--help"}, exitDone, ""},
		{[]string{"topics", "create", "--help"}, exitDone, ""},
		{[]string{}, exitUsage, "a subcommand is needed"},
		{[]string{"config"}, exitUsage, "a subcommand is needed: check, example, schema"},
		{[]string{"verion"}, exitUsage, `unknown command "verion"; nearest is version`},
		{[]string{"zzzzzzzz"}, exitUsage, `unknown command "zzzzzzzz"; allowed are`},
		{[]string{"config", "chekc"}, exitUsage, `nearest is check`},
		{[]string{"version", "--nope"}, exitUsage, "unknown flag: --nope"},
		{[]string{"version", "extra"}, exitUsage, `"extra"`},
		{[]string{"config", "check"}, exitUsage, "a file is needed"},
		{[]string{"config", "check", bad}, exitUsage, "bad.yaml:1:9: stats.bins: 7: must divide 3600"},
		{[]string{"config", "check", bad + "x"}, exitUsage, "no such file"},
		{[]string{"topics", "create", "-c", bad}, exitUsage, "stats.bins: 7"},
	} {
		code, _, stderr := runCommand(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("plumbline %s: got exit code %d, stderr %q, want %d and %q in it", strings.Join(c.args, " "), code,
				stderr, c.code, c.stderr)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	code, out, _ := runCommand(t, "version", "--json")
	var v buildinfo.Info
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitDone || v.Version == "" || v.Go == "" {
		t.Errorf("got %q, %v, want a version", out, err)
	}
}

func TestConfigExampleChecks(t *testing.T) {
	code, example, _ := runCommand(t, "config", "example")
	if code != exitDone {
		t.Fatalf("config example: exit code %d", code)
	}
	path := writeFile(t, "plumbline.yaml", example)
	if code, out, stderr := runCommand(t, "config", "check", path); code != exitDone || out != path+": ok\n" {
		t.Errorf("got %d, %q, %q, want ok", code, out, stderr)
	}
	if code, out, stderr := runCommand(t, "config", "check", "-c", path); code != exitDone || out != path+": ok\n" {
		t.Errorf("-c: got %d, %q, %q, want ok", code, out, stderr)
	}
}

func TestConfigCheckJSON(t *testing.T) {
	good, bad := writeFile(t, "good.yaml", "group: g\n"), writeFile(t, "bad.yaml", "stats: {bins: 7}\nx: 1\n")
	code, out, _ := runCommand(t, "config", "check", "--json", good, bad)
	var got struct {
		Valid    bool
		Problems []configProblem
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if code != exitUsage || got.Valid || len(got.Problems) != 2 || got.Problems[0].Key != "stats.bins" ||
		got.Problems[1].Line != 2 {
		t.Errorf("got exit code %d, %+v, want 2 problems", code, got)
	}
}

func TestConfigSchemaIsJSON(t *testing.T) {
	if _, out, _ := runCommand(t, "config", "schema"); !json.Valid([]byte(out)) {
		t.Error("config schema: not JSON")
	}
}
