package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var updateReference = flag.Bool("update", false, "rewrite docs/cli.md")

// TestCommandReference holds docs/cli.md against the commands; go test ./cmd/plumbline -run Reference -update rewrites
// it.
func TestCommandReference(t *testing.T) {
	const path = "../../docs/cli.md"
	want := commandReference(newRootCommand())
	if *updateReference {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not current: go test ./cmd/plumbline -run Reference -update", path)
	}
}

const referenceHead = `# Commands
Generated from the program: ` + "`go test ./cmd/plumbline -run Reference -update`" + `. ` +
	"`plumbline COMMAND --help`" + ` says more about each.

Exit codes: 0 done, 1 failed, 2 wrong usage or an invalid configuration. ` +
	`Results go to stdout, log lines and errors to stderr.

`

// commandReference is docs/cli.md: the flags that several commands have, then a section for each command.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("Flags of all commands:\n" + block(flagLines(root.PersistentFlags())))
	shared := sharedFlags(leaves(root))
	writeShared(&b, leaves(root), shared)
	commands := slices.SortedFunc(slices.Values(root.Commands()),
		func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	for _, c := range commands {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		fmt.Fprintf(&b, "## %s\n", c.CommandPath())
		writeCommand(&b, c, shared)
		subs := slices.SortedFunc(slices.Values(c.Commands()),
			func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
		for _, sub := range subs {
			writeSubcommand(&b, sub, shared)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// leaves are the commands below c that do something themselves.
func leaves(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			out = append(append(out, sub), leaves(sub)...)
		}
	}
	return out
}

// block is a code block of lines.
func block(lines []string) string { return "```\n" + strings.Join(lines, "\n") + "\n```\n\n" }

// flagLines describe flags as --help does, without those that every command has.
func flagLines(flags *pflag.FlagSet) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			out = append(out, flagLine(f))
		}
	})
	return out
}

func flagLine(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	switch f.DefValue {
	case "", "0", "false", "0s", "[]":
	default:
		if f.Name != "by" { // its default is the user of this process
			usage += " (default " + f.DefValue + ")"
		}
	}
	return fmt.Sprintf("%-24s %s", name, usage)
}

// sharedFlags are the items that more than one command has.
func sharedFlags(commands []*cobra.Command) map[string]bool {
	count, shared := map[string]int{}, map[string]bool{}
	for _, c := range commands {
		for _, line := range flagLines(c.NonInheritedFlags()) {
			count[line]++
			shared[line] = count[line] > 1
		}
	}
	return shared
}

// writeShared writes the flags of several commands, with the commands that have them.
func writeShared(b *strings.Builder, commands []*cobra.Command, shared map[string]bool) {
	having, groups := map[string][]string{}, map[string][]string{}
	for _, c := range commands {
		for _, line := range flagLines(c.NonInheritedFlags()) {
			if shared[line] {
				having[line] = append(having[line], "`"+strings.TrimPrefix(c.CommandPath(), "plumbline ")+"`")
			}
		}
	}
	for _, names := range having {
		slices.Sort(names)
	}
	for line, names := range having {
		key := strings.Join(names, ", ")
		groups[key] = append(groups[key], line)
	}
	b.WriteString("## Flags of several commands\n")
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[key])
		fmt.Fprintf(b, "%s:\n%s", key, block(groups[key]))
	}
}

// writeSubcommand writes a command without examples as one line and its flags.
func writeSubcommand(b *strings.Builder, c *cobra.Command, shared map[string]bool) {
	if c.Example == "" {
		fmt.Fprintf(b, "`%s`: %s.\n\n", useLine(c), c.Short)
		writeOwn(b, c, shared)
		return
	}
	fmt.Fprintf(b, "### %s\n", c.CommandPath())
	writeCommand(b, c, shared)
}

func useLine(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

func ownFlags(c *cobra.Command, shared map[string]bool) []string {
	return slices.DeleteFunc(flagLines(c.NonInheritedFlags()), func(line string) bool { return shared[line] })
}

func writeCommand(b *strings.Builder, c *cobra.Command, shared map[string]bool) {
	if b.WriteString(c.Short + ".\n\n"); c.HasSubCommands() && !c.LocalFlags().HasFlags() {
		return
	}
	lines := unindented(c.Example)
	if use := useLine(c); use != c.CommandPath() {
		lines = use + "\n" + lines
	}
	if lines == "" {
		writeOwn(b, c, shared)
		return
	}
	parts := strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	if own := ownFlags(c, shared); len(own) > 0 {
		parts = append(append(parts, ""), own...)
	}
	b.WriteString(block(parts))
}

func writeOwn(b *strings.Builder, c *cobra.Command, shared map[string]bool) {
	if own := ownFlags(c, shared); len(own) > 0 {
		b.WriteString(block(own))
	}
}

// unindented are the lines of an example without the indent that help has.
func unindented(example string) string {
	if example == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(example) {
		b.WriteString(strings.TrimPrefix(strings.TrimRight(line, "\n"), "  ") + "\n")
	}
	return b.String()
}
