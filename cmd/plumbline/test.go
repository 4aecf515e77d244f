package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/ruletest"
)

func newTestCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "test", Short: "Try rules on rows of your own, without a broker"}
	group(cmd)
	cmd.AddCommand(newTestRulesCommand())
	return cmd
}

func newTestRulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rules FILE...",
		Short: "Run cases: rows in, alerts expected; exit code 1 if one fails",
		Long: "test rules runs the cases of every FILE through the operators of `plumbline run`, in this process and in event time. A case\n" +
			"has a configuration, rows that are made as it says, given as sums of panes or read from a file, and the alerts that are expected, by rule,\n" +
			"slice, state and time. A file that has no configuration is tried with that of --config, else with the defaults.\n" +
			"examples/rules-test.yaml is an example that describes every key.",
		Example: "  plumbline test rules rules-test.yaml\n" +
			"  plumbline test rules -c plumbline.yaml --json cases/*.yaml",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			flag, err := cmd.Flags().GetString("config")
			if err != nil {
				return err
			}
			var results []ruletest.Result
			failed := 0
			for _, file := range files {
				suite, err := ruletest.Read(file, flag)
				var invalid ruletest.InvalidError
				if errors.As(err, &invalid) {
					return usageError{err}
				}
				if err != nil {
					return err
				}
				for i := range suite.Tests {
					r, err := suite.Run(cmd.Context(), &suite.Tests[i])
					if err != nil {
						return fmt.Errorf("%s: %q: %w", suite.Tests[i].At, suite.Tests[i].Name, err)
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
		},
	}
}

func printRuleResult(w io.Writer, r *ruletest.Result) {
	if r.OK {
		fmt.Fprintf(w, "ok    %s (%d alerts)\n", r.Name, len(r.Alerts))
		return
	}
	fmt.Fprintf(w, "FAIL  %s (%s)\n", r.Name, r.At)
	for _, p := range r.Problems {
		fmt.Fprintf(w, "      %s\n", p)
	}
}
