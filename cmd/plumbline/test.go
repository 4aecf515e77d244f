package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/internal/ruletest"
)

func newTestCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "test", Short: "Try rules on rows of your own, without a broker"}
	cli.Group(cmd)
	cmd.AddCommand(newTestRulesCommand())
	return cmd
}

func newTestRulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rules FILE...",
		Short: "Run cases: rows in, alerts expected; exit code 1 if one fails",
		Long:  help("test-rules"),
		Example: "  plumbline test rules rules-test.yaml\n" +
			"  plumbline test rules -c plumbline.yaml --json cases/*.yaml",
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: runTestRules,
	}
}

func runTestRules(cmd *cobra.Command, files []string) error {
	configFile, err := cmd.Flags().GetString("config")
	if err != nil {
		return err
	}
	var results []ruletest.Result
	failed := 0
	for _, file := range files {
		suite, err := ruletest.Read(file, configFile)
		if errors.As(err, new(ruletest.InvalidError)) {
			return cli.UsageError{Err: err}
		}
		if err != nil {
			return err
		}
		for i := range suite.Tests {
			test := &suite.Tests[i]
			r, err := suite.Run(cmd.Context(), test)
			if err != nil {
				return fmt.Errorf("%s: %q: %w", test.At, test.Name, err)
			}
			if r.File = file; !r.OK {
				failed++
			}
			results = append(results, r)
			if !jsonOutput(cmd) {
				printRuleResult(cmd.OutOrStdout(), &r)
			}
		}
	}
	if jsonOutput(cmd) {
		if err := printJSON(cmd, results); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases failed", failed, len(results))
	}
	return nil
}

func printRuleResult(w io.Writer, r *ruletest.Result) {
	if r.OK {
		fmt.Fprintf(w, "ok    %s (%d alerts)\n", printable.Text(r.Name), len(r.Alerts))
		return
	}
	fmt.Fprintf(w, "FAIL  %s (%s)\n", printable.Text(r.Name), r.At)
	for _, p := range r.Problems {
		fmt.Fprintf(w, "      %s\n", printable.Text(p))
	}
}
