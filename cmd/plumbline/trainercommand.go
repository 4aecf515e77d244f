package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/trainerd"
	"github.com/plumbline/plumbline/trainer/service"
)

func newTrainerCommand() *cobra.Command {
	var o trainerd.Options
	cmd := &cobra.Command{
		Use:   "trainer",
		Short: "Train the heads that the pipeline requests, until a signal ends it",
		Long: "trainer reads topics.finetune, takes one request at a time, trains its head on the rows that the section trainer of the\n" +
			"configuration names, and publishes the result on topics.heads. Several trainers share the requests; where one is\n" +
			"lost, another goes on with its job. docs/train.md describes it.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			log, err := newLogger(cmd)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			o.Bound = heap.Bound
			if err = trainerd.Run(ctx, cfg, o, log); errors.Is(err, trainerd.ErrNothing) {
				return usageError{err}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after one job")
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`address` of /metrics, /-/healthy and /-/ready; none by default")
	cmd.AddCommand(newTrainerListCommand(), newTrainerCancelCommand(), newTrainerGuardCommand())
	return cmd
}

// newTrainerGuardCommand is what stands between a trainer and the program of trainer.command (service.Guard). It is a process
// of its own, and ends as the program does.
func newTrainerGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "guard GRACE PROGRAM [ARGUMENT...]",
		Short:              "Run a program that ends when standard input does",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			const least = 2
			if len(args) < least {
				return usageErrorf("trainer guard: GRACE and PROGRAM are needed")
			}
			grace, err := time.ParseDuration(args[0])
			if err != nil {
				return usageErrorf("trainer guard: GRACE: %v", err)
			}
			os.Exit(service.Guard(args[1:], grace))
			return nil
		},
	}
}
