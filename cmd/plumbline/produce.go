package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/producer"
	"github.com/plumbline/plumbline/internal/progress"
)

func newProduceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "produce FILE[:array]...",
		Short: "Send the rows of files to the logits and labels topics",
		Long:  help("produce"),
		Example: "  plumbline produce test.npz:resnet20 --label test_labels --shuffle --label-delay 0s-5m\n" +
			"  plumbline produce clean.parquet drifted.parquet --rate 500",
		Args: cli.Args(cobra.MinimumNArgs(1)),
	}
	feeds := addFeedFlags(cmd)
	rate := cmd.Flags().Float64("rate", 0, "rows per second of wall clock; 0: as fast as possible")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if !(*rate >= 0) {
			return cli.Usagef("--rate %v: must be 0 or more rows per second", *rate)
		}
		return runProduce(cmd, files, feeds, *rate)
	}
	return cmd
}

func runProduce(cmd *cobra.Command, files []string, feeds *feedFlags, rate float64) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	if err := feeds.check(); err != nil {
		return err
	}
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	partitions, err := kafkaclient.InputPartitions(cmd.Context(), client, cfg.Topics)
	if err != nil {
		return kafkaclient.Explain(cmd.Context(), cfg.Kafka, err)
	}
	feeds.pace = rate
	f, total, err := feeds.open(files, cfg, partitions)
	if err != nil {
		return err
	}
	log, err := newLogger(cmd)
	if err != nil {
		return err
	}
	bar := progress.New(cmd.ErrOrStderr(), total, "produce", "rows")
	summary, err := producer.Send(cmd.Context(), client, f, producer.Options{
		Logits: cfg.Topics.Logits,
		Labels: cfg.Topics.Labels,
		Rate:   rate,
		Log:    log,
		Done:   bar.Add,
	})
	bar.Finish()
	summary.Partitions = partitions
	if err != nil {
		return fmt.Errorf("%w; acknowledged are the rows before number %d, counted from 0: the same command goes on "+
			"with %s", err, summary.Acknowledged, feeds.goOn(summary.Acknowledged))
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, summary)
	}
	printSent(cmd, summary)
	return nil
}

func printSent(cmd *cobra.Command, s producer.Summary) {
	printf(cmd, "%d rows, %d labels in %d + %d messages, %.1f MB, %s to %s, %.1f s, %.0f rows/s\n", s.Rows, s.Labels,
		s.LogitsMessages, s.LabelMessages, float64(s.Bytes)/1e6, s.FirstEvent, s.LastEvent, s.Seconds,
		float64(s.Rows)/s.Seconds)
	if s.Again > 0 {
		printf(cmd, "%d messages were sent again; if one is there twice, its rows count as duplicates\n", s.Again)
	}
}
