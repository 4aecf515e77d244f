package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/control"
	"github.com/plumbline/plumbline/internal/doctor"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

func newDoctorCommand() *cobra.Command {
	var f processFlags
	records := 200
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check a deployment, and say what to do about what is wrong",
		Long:    help("doctor"),
		Example: "  plumbline doctor -c plumbline.yaml",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, &f, records) },
	}
	f.add(cmd)
	cmd.Flags().IntVar(&records, "records", records, "latest records of a partition to look at")
	return cmd
}

func runDoctor(cmd *cobra.Command, f *processFlags, records int) error {
	if records < 1 {
		return cli.Usagef("--records %d: must be 1 or more", records)
	}
	cfg, log, err := setup(cmd)
	if err != nil {
		return err
	}
	o := doctor.Options{Config: cfg, Records: records, Log: log}
	o.Foreign = func(ctx context.Context) (int, []error, error) {
		return deployment.New(&cfg, log).Foreign(ctx, engine.New(cfg, log).Readable)
	}
	if cfg.HTTP.Listen != "" || len(f.urls) > 0 {
		o.Ask = func(context.Context) (s doctor.Status, err error) {
			err = f.ask(cmd, control.Request{Method: http.MethodGet, Path: "status"}, &s)
			return s, err
		}
	}
	findings, err := doctor.Run(cmd.Context(), o)
	if err != nil {
		return err
	}
	if err := printReport(cmd, cmd.OutOrStdout(), findings); err != nil {
		return err
	}
	if findings.Worst() == doctor.Bad {
		return errors.New("doctor: something is wrong, see above")
	}
	return nil
}

func newDeadLettersCommand() *cobra.Command {
	follow, limit := false, 20
	cmd := &cobra.Command{
		Use:     "deadletters",
		Short:   "Show refused messages, and why they were refused",
		Long:    help("deadletters"),
		Example: "  plumbline deadletters -c plumbline.yaml --follow",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDeadLetters(cmd, limit, follow) },
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "latest messages to show")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those to come")
	return cmd
}

func runDeadLetters(cmd *cobra.Command, limit int, follow bool) error {
	if limit < 0 {
		return cli.Usagef("--limit %d: must not be negative", limit)
	}
	cfg, log, err := setup(cmd)
	if err != nil {
		return err
	}
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	spec := kafkaio.TailSpec{Client: client, MaxBytes: cfg.Kafka.FetchMax, Log: log}
	letters, err := doctor.Letters(cmd.Context(), spec, cfg.Topics.DeadLetter, limit)
	if err != nil {
		return kafkaclient.Explain(cmd.Context(), cfg.Kafka, err)
	}
	letters = letters[max(0, len(letters)-limit):]
	if jsonOutput(cmd) && !follow { // those to come have no end: each is an object then
		return printJSON(cmd, map[string]any{"dead_letters": append([]doctor.Letter{}, letters...)})
	}
	if len(letters) == 0 && !jsonOutput(cmd) {
		printf(cmd, "%s: no dead letters\n", cfg.Topics.DeadLetter)
	}
	for _, l := range letters {
		if err := printLetter(cmd, l); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	err = doctor.Follow(cmd.Context(), spec, cfg.Topics.DeadLetter, func(l doctor.Letter) error {
		return printLetter(cmd, l)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// printLetter prints a dead letter.
func printLetter(cmd *cobra.Command, l doctor.Letter) error {
	return printReport(cmd, cmd.OutOrStdout(), l)
}
