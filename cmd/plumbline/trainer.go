package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

func newTrainerCommand() *cobra.Command {
	var o trainerd.Options
	cmd := &cobra.Command{
		Use:   "trainer",
		Short: "Train the heads that the pipeline requests, until a signal ends it",
		Long:  help("trainer"),
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := setup(cmd)
			if err != nil {
				return err
			}
			o.Bound = heap.Bound
			if err = trainerd.Run(cmd.Context(), cfg, o, log); errors.Is(err, trainerd.ErrNothing) {
				return cli.UsageError{Err: err}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after one job")
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`address` of /metrics, /-/healthy and /-/ready; none by default")
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List requests and what became of them",
			Args:  cli.Args(cobra.NoArgs),
			RunE:  func(cmd *cobra.Command, _ []string) error { return runHeadsList(cmd) },
		},
		newOrderCommand("cancel", "Cancel a request, or the job that works on it", record.HeadCancel),
		newTrainerGuardCommand(),
	)
	return cmd
}

// newTrainerGuardCommand is what stands between a trainer and the program of trainer.command (service.Guard). It is a
// process of its own, and ends as the program does.
func newTrainerGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "guard GRACE PROGRAM [ARGUMENT...]",
		Short:              "Run a program that ends when standard input does",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			const least = 2
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if len(args) < least {
				return cli.Usagef("trainer guard: GRACE and PROGRAM are needed")
			}
			grace, err := time.ParseDuration(args[0])
			if err != nil {
				return cli.Usagef("trainer guard: GRACE: %v", err)
			}
			os.Exit(service.Guard(args[1:], grace))
			return nil
		},
	}
}
