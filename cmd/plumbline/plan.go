package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/plan"
)

func newPlanCommand() *cobra.Command {
	l := plan.Load{Models: 1, Batch: 1000}
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Cores, memory, disk and topics that a deployment will take",
		Long:    help("plan"),
		Example: "  plumbline plan --rows-per-second 20000 --classes 10 --keys 20 --delay 10m",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			p, err := plan.New(l, &cfg)
			if err != nil {
				return cli.Usagef("%v", err)
			}
			return printReport(cmd, cmd.OutOrStdout(), p)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&l.Rows, "rows-per-second", 0, "predictions a second, of all models")
	flags.IntVar(&l.Classes, "classes", 0, "classes K of the models")
	flags.IntVar(&l.Keys, "keys", 0, "slices with statistics of their own, of all models together")
	flags.IntVar(&l.Models, "models", l.Models, "model versions that serve at a time")
	flags.DurationVar(&l.Delay, "delay", 0, "time within which nearly all labels come")
	flags.BoolVar(&l.Inline, "inline", false, "labels come with their predictions")
	flags.IntVar(&l.Batch, "batch", l.Batch, "rows of a message")
	return cmd
}
