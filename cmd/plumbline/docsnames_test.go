package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline/plumbline/internal/config"
)

// documents are the Markdown files that users read, by path from the root of the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md",
		"deploy/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimPrefix(filepath.ToSlash(f), "../../")] = string(text)
		}
	}
	if len(out) < 15 {
		t.Fatalf("%d documents found, there are more", len(out))
	}
	return out
}

var (
	invocation = regexp.MustCompile("plumbline ([a-z][^\n`|]*)")
	longFlag   = regexp.MustCompile(`(?:^|[\s\[(])--([a-z][a-z0-9-]*)`)
)

// TestDocumentsNameFlagsThatExist: every flag that stands behind a command in a document is one of that command.
func TestDocumentsNameFlagsThatExist(t *testing.T) {
	checked := 0
	for file, text := range documents(t) {
		for _, m := range invocation.FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], "#")
			cmd := commandOf(newRootCommand(), strings.Fields(line))
			if cmd == nil {
				continue // prose: "plumbline measures …"
			}
			flags := map[string]bool{"help": true, "version": true}
			add := func(f *pflag.Flag) { flags[f.Name] = true }
			cmd.LocalFlags().VisitAll(add)
			cmd.InheritedFlags().VisitAll(add)
			for _, f := range longFlag.FindAllStringSubmatch(line, -1) {
				checked++
				if !flags[f[1]] {
					t.Errorf("%s: plumbline %s: %s has no flag --%s", file, strings.TrimSpace(line),
						cmd.CommandPath(), f[1])
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d flags looked at: the documents have more", checked)
	}
}

// commandOf walks down from root by words; nil where the first is no command.
func commandOf(root *cobra.Command, words []string) *cobra.Command {
	at := root
	for _, w := range words {
		var next *cobra.Command
		for _, c := range at.Commands() {
			if c.Name() == w {
				next = c
			}
		}
		if next == nil {
			break
		}
		at = next
	}
	if at == root {
		return nil
	}
	return at
}

var (
	documentedKey = regexp.MustCompile("(?m)^- `([a-z_.\\[\\]]+):?[ `]")
	namedKey      = regexp.MustCompile("`([a-z_]+(?:\\.[a-z_\\[\\]]+)+)(?:[:= ][^`\n]*)?`")
	fileName      = regexp.MustCompile(`\.(go|md|py|sh|js|json|svg|npz|onnx|yaml|yml|csv|parquet)$`)
)

// otherNames begin as keys do, and are not of the configuration.
var otherNames = map[string]bool{
	"refit.z":                               true, // CHANGELOG.md: a key that is gone
	"unlabelled.classes.shifts[].worst":     true, // of snapshots
	"unlabelled.classes.shifts[].worst[].n": true,
}

// TestDocumentsNameKeysThatExist: what looks like a key of the configuration in a document is one.
func TestDocumentsNameKeysThatExist(t *testing.T) {
	keys, sections, parts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range documentedKey.FindAllStringSubmatch(string(config.Page()), -1) {
		keys[m[1]] = true
		section, _, _ := strings.Cut(m[1], ".")
		sections[strings.TrimSuffix(section, "[]")] = true
		for i := range m[1] {
			if m[1][i] == '.' || m[1][i] == '[' {
				parts[m[1][:i]] = true
			}
		}
	}
	checked := 0
	for file, text := range documents(t) {
		if file == "docs/benchmarks.md" {
			continue // its tables have names of other tools
		}
		for _, m := range namedKey.FindAllStringSubmatch(text, -1) {
			key := m[1]
			section, _, _ := strings.Cut(key, ".")
			if !sections[section] || fileName.MatchString(key) || otherNames[key] {
				continue
			}
			checked++
			if !keys[key] && !parts[key] {
				t.Errorf("%s: `%s` is no key of the configuration", file, key)
			}
		}
	}
	if len(keys) < 200 || checked < 100 {
		t.Errorf("%d keys, %d names looked at: there are more", len(keys), checked)
	}
}
