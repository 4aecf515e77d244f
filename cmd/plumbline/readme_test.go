package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsOfReadme has a shell run the commands that README.md gives for files, as they stand there, in a folder
// with examples/data. Only the build is a stand-in: it makes ./plumbline, which starts this test's program as the
// command. No other plumbline is in the PATH.
func TestCommandsOfReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("compares every method and trains a head: 10 seconds")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh:", err)
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "On files alone:\n\n```\n")
	if !ok {
		t.Fatal("README.md has no commands for files alone")
	}
	block, _, _ = strings.Cut(block, "```")
	if n := strings.Count(block, "\nplumbline "); n < 6 {
		t.Errorf("%d commands, there are more", n)
	}
	root, tools := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "examples", "data"), os.DirFS("../../examples/data")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build := fmt.Sprintf("#!%s\n"+
		"[ \"$*\" = 'build ./cmd/plumbline' ] || { echo \"go $*: not the build of ./plumbline\" >&2; exit 1; }\n"+
		"printf '#!%s\\n%s=1 exec \"%s\" \"$@\"\\n' >plumbline && /bin/chmod +x plumbline\n",
		shell, shell, asCommand, self)
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(build), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), shell, "-e", "-x", "-c", block)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+tools)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the commands end with %v:\n%s", err, out)
	}
}
