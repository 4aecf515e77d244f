package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline/plumbline/internal/nearest"
)

// UsageError is an error of whoever called the command, or of its configuration.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what the error is about.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef is fmt.Errorf for wrong usage: an argument or flag that cannot be.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// FlagError says in our words what pflag has against a flag.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var without *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &without):
		name, _ := pflag.UnquoteUsage(without.GetFlag())
		return Usagef("--%s: needs a value: %s", without.GetFlag().Name, name)
	case errors.As(err, &wrong):
		return Usagef("--%s %q: must be %s", wrong.GetFlag().Name, wrong.GetValue(), kindOfFlag(wrong.GetFlag()))
	}
	return UsageError{err}
}

func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		return Usagef("-%s: unknown flag", err.GetSpecifiedName())
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	name := err.GetSpecifiedName()
	if near := nearest.Of(name, known); near != "" {
		return Usagef("--%s: unknown flag; nearest is --%s", name, near)
	}
	return Usagef("--%s: unknown flag", name)
}

// kindOfFlag says what the value of a flag must be.
func kindOfFlag(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "int", "int64":
		return "a whole number"
	case "uint", "uint64":
		return "a whole number of 0 or more"
	case "float64":
		return "a number"
	case "duration":
		return "a duration such as 500ms, 10s or 1h30m"
	case "bool":
		return "true or false"
	default:
		return "a " + kind
	}
}

// Args makes an argument check exit with 2, and say what the command takes.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "plumbline ")
		got := "nothing"
		if len(args) > 0 {
			got = fmt.Sprintf("%q", args)
		}
		if takes := arguments(cmd); takes != "" {
			return Usagef("%s: takes %s; got %s", name, takes, got)
		}
		return Usagef("%s: takes no argument; got %s", name, got)
	}
}

// arguments are those that the command's usage names, without its flags.
func arguments(cmd *cobra.Command) string {
	var out []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "[-") {
			break
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// Group makes cmd one that only has subcommands: without one of them it is wrong usage.
func Group(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s: a subcommand is needed: %s", cmd.Name(), strings.Join(names(cmd), ", "))
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args has refused before
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if near := nearest.Of(name, names(cmd)); near != "" {
		return Usagef("unknown command %q; nearest is %s", name, near)
	}
	return Usagef("unknown command %q; allowed are %s", name, strings.Join(names(cmd), ", "))
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			out = append(out, c.Name())
		}
	}
	slices.Sort(out)
	return out
}

// HelpCommand is cobra's help, for which an unknown command is wrong usage.
func HelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of := cmd.Root()
			for _, name := range args {
				found := find(of, name)
				if found == nil {
					return unknownCommand(of, name)
				}
				of = found
			}
			return of.Help()
		},
	}
}

func find(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// CompletionCommand prints what a shell loads to complete command lines.
func CompletionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what a shell loads to complete commands: bash, zsh, fish or powershell",
		Example: "  plumbline completion bash > /etc/bash_completion.d/plumbline\n" +
			"  source <(plumbline completion zsh)",
		Args:      Args(cobra.ExactArgs(1)),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return Usagef("completion %q: must be one of %s", args[0], strings.Join(shells, ", "))
		},
	}
}
