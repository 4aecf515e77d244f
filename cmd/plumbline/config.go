package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Write or check configuration files, print schema or example"}
	cli.Group(cmd)
	docs := newPrintCommand("docs", "Print the reference of the configuration, docs/config.md", config.Page)
	docs.Hidden = true
	cmd.AddCommand(
		newConfigInitCommand(),
		newConfigCheckCommand(),
		newPrintCommand("schema", "Print the JSON Schema of the configuration, for editors", config.Schema),
		newPrintCommand("example", "Print a configuration file with every key, its default and its meaning",
			config.Example),
		docs,
	)
	return cmd
}

// newPrintCommand prints a text that is derived from the configuration's structs.
func newPrintCommand(name, short string, text func() []byte) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(text())
			return err
		},
	}
}

// configProblem is one problem in `plumbline config check --json`.
type configProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Value   string `json:"value,omitempty"`
	Message string `json:"message"`
}

func newConfigCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check configuration files; exit code 2 if one is invalid",
		Long:  help("config-check"),
		RunE: func(cmd *cobra.Command, files []string) error {
			if path, _ := cmd.Flags().GetString("config"); path != "" {
				files = append(files, path)
			}
			if len(files) == 0 {
				return cli.Usagef("config check: a file is needed")
			}
			return checkConfigs(cmd, files)
		},
	}
}

func checkConfigs(cmd *cobra.Command, files []string) error {
	var errs []error
	found := []configProblem{}
	for _, file := range files {
		_, err := loadConfigFile(file)
		var problems config.Problems
		switch {
		case err == nil:
			if !jsonOutput(cmd) {
				printf(cmd, "%s: ok\n", file)
			}
		case errors.As(err, &problems):
			for _, p := range problems {
				found = append(found, configProblem{p.File, p.Line, p.Column, p.Path, p.Value, p.Message})
			}
		default:
			found = append(found, configProblem{File: file, Message: err.Error()})
		}
		errs = append(errs, err)
	}
	if !jsonOutput(cmd) {
		return errors.Join(errs...)
	}
	report := map[string]any{"files": len(files), "valid": len(found) == 0, "problems": found}
	if err := printJSON(cmd, report); err != nil {
		return err
	}
	if len(found) > 0 {
		return cli.Usagef("%d problems in %d files", len(found), len(files))
	}
	return nil
}
