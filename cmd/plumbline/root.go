package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/internal/setting"
)

// subcommands are the constructors of all subcommands, in the order of help.
var subcommands = []func() *cobra.Command{
	newDemoCommand,
	newRunCommand,
	newReplayCommand,
	newProduceCommand,
	newEvalCommand,
	newFitCommand,
	newApplyCommand,
	newTrainCommand,
	newTrainerCommand,
	newHeadsCommand,
	newConvertCommand,
	newTopicsCommand,
	newScaleCommand,
	newStateCommand,
	newPauseCommand,
	newResumeCommand,
	newCalibratorsCommand,
	newModelsCommand,
	newHistoryCommand,
	newInspectCommand,
	newTestCommand,
	newConfigCommand,
	newVersionCommand,
}

// newRootCommand returns the command plumbline with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "plumbline",
		Short:         "Streaming confidence calibration: observe, alarm, refit, verify, publish",
		Long:          help("plumbline"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	group(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringP("config", "c", "", "configuration `file` (default: built-in defaults)")
	flags.Bool("json", false, "print one JSON object instead of text")
	flags.String("log-level", "info", "log `level`: debug, info, warn or error")
	for _, newCommand := range subcommands {
		cmd := newCommand()
		switch cmd.Name() {
		case "eval", "fit", "apply", "convert", "produce", "replay", "train":
			bounded(cmd)
		case "test", "inspect":
			for _, sub := range cmd.Commands() {
				bounded(sub)
			}
		}
		root.AddCommand(cmd)
	}
	return root
}

// bounded makes a command that reads files end where that takes more memory than --max-memory, and soon after SIGTERM
// or Ctrl-C whatever it does.
func bounded(cmd *cobra.Command) {
	var most string
	cmd.Flags().StringVar(&most, "max-memory", "",
		"stop if files take more `memory`, such as 4GiB; 0: no bound (default three quarters of the machine's)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		const parts, of = 3, 4
		limit := heap.Machine() / of * parts
		if most != "" {
			var err error
			if limit, err = setting.ParseBytes(most); err != nil {
				return usageErrorf("--max-memory %q: %v", most, err)
			}
		}
		err := heap.Within(cmd.Context(), limit, func() error { return run(cmd, args) })
		if errors.Is(err, heap.ErrMemory) {
			err = fmt.Errorf("%s: %w (--max-memory)", cmd.Name(), err)
		}
		return err
	}
}

// group makes cmd one that only has subcommands: without one of them it is wrong usage.
func group(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageErrorf("%s: a subcommand is needed: %s", cmd.CommandPath(), strings.Join(names(cmd), ", "))
		}
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usageErrorf("unknown command %q; nearest is %s", args[0], near[0])
		}
		return usageErrorf("unknown command %q; allowed are %s", args[0], strings.Join(names(cmd), ", "))
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args has refused before
	cmd.SuggestionsMinimumDistance = 2
}

func names(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			out = append(out, c.Name())
		}
	}
	return out
}

// usageArgs makes an argument check exit with 2.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// loadConfig reads the file that -c names, or gives the defaults. A file that cannot be read is wrong usage.
func loadConfig(cmd *cobra.Command) (config.Config, error) {
	path, err := cmd.Flags().GetString("config")
	if err != nil {
		return config.Config{}, err
	}
	return loadConfigFile(path)
}

func loadConfigFile(path string) (config.Config, error) {
	c, err := config.Load(path)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return c, usageError{err}
	}
	return c, err
}

// jsonOutput reports whether --json is set.
func jsonOutput(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("json")
	return err == nil && on
}

// printJSON writes v as one indented JSON object on stdout.
func printJSON(cmd *cobra.Command, v any) error { return encodeJSON(cmd.OutOrStdout(), v) }

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printReport writes a report as --json says: as an object, or as text.
func printReport(cmd *cobra.Command, w io.Writer, report interface{ Print(w io.Writer) error }) error {
	if jsonOutput(cmd) {
		return encodeJSON(w, report)
	}
	return report.Print(w)
}

// setup is what a command of the pipeline begins with: the configuration and the logger. Its context ends with SIGINT
// and SIGTERM, as that of every command does (main).
func setup(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return cfg, nil, err
	}
	log, err := newLogger(cmd)
	return cfg, log, err
}

// newLogger returns a text logger on stderr at --log-level.
func newLogger(cmd *cobra.Command) (*slog.Logger, error) {
	name, err := cmd.Flags().GetString("log-level")
	if err != nil {
		return nil, err
	}
	level, ok := map[string]slog.Level{
		"debug": slog.LevelDebug,
		"info":  slog.LevelInfo,
		"warn":  slog.LevelWarn,
		"error": slog.LevelError,
	}[strings.ToLower(name)]
	if !ok {
		return nil, usageErrorf("--log-level %q: must be debug, info, warn or error", name)
	}
	text := slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})
	return slog.New(faultlog.New(text)), nil
}

// printf writes a line of text on stdout. Texts among the arguments stay within it: they may be names and reasons from
// Kafka or from people.
func printf(cmd *cobra.Command, format string, args ...any) {
	_, _ = printable.Fprintf(cmd.OutOrStdout(), format, args...)
}

//go:embed help/*.txt
var helpTexts embed.FS

// help is the long text of a command, help/NAME.txt, with args in the places of its verbs.
func help(name string, args ...any) string {
	text, err := helpTexts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic("plumbline: no help for " + name)
	}
	return fmt.Sprintf(strings.TrimSuffix(string(text), "\n"), args...)
}
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildinfo.Read()
			if jsonOutput(cmd) {
				return printJSON(cmd, v)
			}
			printf(cmd, "plumbline %s", v.Version)
			if v.Revision != "" {
				printf(cmd, " (%.12s, %s)", v.Revision, v.Time)
			}
			if v.Modified {
				printf(cmd, " modified")
			}
			printf(cmd, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
}
