package main

import (
	"os"
	"strings"
	"testing"
)

// TestCommandsOfReadme runs the commands that README.md has for files, on the files of examples/data.
func TestCommandsOfReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("compares every method and trains a head: 10 seconds")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```\ncd examples/data\n")
	if !ok {
		t.Fatal("no commands in examples/data")
	}
	block, _, _ = strings.Cut(block, "```")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/data")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) < 6 {
		t.Errorf("%d commands, there are more", len(lines))
	}
	for _, line := range lines {
		command, _, _ := strings.Cut(line, " #")
		args := strings.Fields(command)
		if args[0] != "plumbline" {
			t.Errorf("%q is no command of plumbline", line)
			continue
		}
		if code, _, stderr := runCommand(t, args[1:]...); code != exitDone {
			t.Errorf("%q ends with %d: %s", command, code, stderr)
		}
	}
}
