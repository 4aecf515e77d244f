package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/heap"
)

func newRunCommand() *cobra.Command {
	var stages string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipeline on Kafka until a signal ends it",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := setup(cmd)
			if err != nil {
				return err
			}
			which, err := parseStages(stages)
			if err != nil {
				return err
			}
			rt := engine.New(cfg, log)
			rt.Restoring = heap.Grows
			return rt.Run(cmd.Context(), which)
		},
	}
	cmd.Flags().StringVar(&stages, "stages", "all",
		"`stages` to run: all, or some of shards,models,repartition")
	return cmd
}

// parseStages reads a list with commas; all are those that the configuration has work for.
func parseStages(s string) (engine.Stages, error) {
	var out engine.Stages
	for name := range strings.SplitSeq(s, ",") {
		switch name {
		case "all":
			out = engine.Stages{Shards: true, Models: true, Repartition: true}
		case "shards":
			out.Shards = true
		case "models":
			out.Models = true
		case "repartition":
			out.Repartition = true
		default:
			return engine.Stages{}, cli.Usagef("--stages %q: must be all, or some of shards, models and repartition "+
				"with commas", s)
		}
	}
	return out, nil
}
