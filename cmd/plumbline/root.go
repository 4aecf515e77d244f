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
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/internal/setting"
)

// section is a group of commands in help.
type section struct {
	title    string
	commands []func() *cobra.Command
}

// sections are the constructors of all subcommands, in the order of help.
var sections = []section{
	{"Begin:", []func() *cobra.Command{newDemoCommand, newPlanCommand, newConfigCommand, newTopicsCommand,
		newProduceCommand}},
	{"Run:", []func() *cobra.Command{newRunCommand, newServeCommand, newMigrateCommand, newTrainerCommand,
		newHealthCommand, newPauseCommand, newResumeCommand, newScaleCommand, newStateCommand, newBackupCommand,
		newRestoreCommand, newDoctorCommand, newDeadLettersCommand}},
	{"See and decide:", []func() *cobra.Command{newModelsCommand, newCalibratorsCommand, newHeadsCommand,
		newHistoryCommand}},
	{"On files:", []func() *cobra.Command{newEvalCommand, newFitCommand, newApplyCommand, newConvertCommand,
		newTrainCommand, newReplayCommand, newTestCommand, newInspectCommand}},
	{"Other:", []func() *cobra.Command{cli.CompletionCommand, cli.HelpCommand, newVersionCommand}},
}

// Commands stand in the order of sections.
func init() { cobra.EnableCommandSorting = false }

// newRootCommand returns the command plumbline with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "plumbline",
		Short:         "Streaming confidence calibration: observe, alarm, refit, verify, publish",
		Long:          help("plumbline"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cli.Group(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(cli.FlagError)
	root.Version = versionLine(buildinfo.Read())
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	flags := root.PersistentFlags()
	flags.StringP("config", "c", "", "configuration `file` (default: built-in defaults)")
	flags.Bool("json", false, "print one JSON object instead of text")
	flags.String("log-level", "info", "log `level`: debug, info, warn or error")
	flags.String("log-format", "text", "`format` of log lines: text (key=value) or json, an object a line")
	for _, part := range sections {
		root.AddGroup(&cobra.Group{ID: part.title, Title: part.title})
		for _, newCommand := range part.commands {
			cmd := newCommand()
			cmd.GroupID = part.title
			limit(cmd)
			if cmd.Name() == "help" {
				root.SetHelpCommand(cmd)
				root.SetHelpCommandGroupID(part.title)
			}
			root.AddCommand(cmd)
		}
	}
	return root
}

// limit bounds the memory of the commands that read files.
func limit(cmd *cobra.Command) {
	switch cmd.Name() {
	case "eval", "fit", "apply", "convert", "produce", "replay", "train":
		bounded(cmd)
	case "test", "inspect":
		for _, sub := range cmd.Commands() {
			bounded(sub)
		}
	}
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
				return cli.Usagef("--max-memory %q: %w", most, err)
			}
		}
		err := heap.Within(cmd.Context(), limit, func() error { return run(cmd, args) })
		if errors.Is(err, heap.ErrMemory) {
			err = fmt.Errorf("%s: %w (--max-memory)", cmd.Name(), err)
		}
		return err
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
		return c, cli.UsageError{Err: err}
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

// newLogger returns a logger on stderr as --log-level and --log-format say.
func newLogger(cmd *cobra.Command) (*slog.Logger, error) {
	level, err := cmd.Flags().GetString("log-level")
	if err != nil {
		return nil, err
	}
	format, err := cmd.Flags().GetString("log-format")
	if err != nil {
		return nil, err
	}
	return cli.NewLogger(cmd.ErrOrStderr(), level, format)
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
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildinfo.Read()
			if jsonOutput(cmd) {
				return printJSON(cmd, v)
			}
			printf(cmd, "%s\n", versionLine(v))
			return nil
		},
	}
}

func versionLine(v buildinfo.Info) string {
	line := "plumbline " + v.Version
	if v.Revision != "" {
		line += fmt.Sprintf(" (%.12s, %s)", v.Revision, v.Time)
	}
	if v.Modified {
		line += " modified"
	}
	return line + " " + v.Go + " " + v.Platform
}
