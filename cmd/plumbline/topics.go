package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/kafkaclient"
)

func newTopicsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "topics", Short: "Make the Kafka topics"}
	group(cmd)
	cmd.AddCommand(&cobra.Command{
		Use:   "create",
		Short: "Make all topics of the configuration; those that exist are checked and left as they are",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runTopicsCreate(cmd) },
	})
	return cmd
}

func runTopicsCreate(cmd *cobra.Command) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	statuses, err := kafkaclient.CreateTopics(cmd.Context(), client, cfg)
	if err != nil {
		return err
	}
	if jsonOutput(cmd) {
		if err := printJSON(cmd, map[string]any{"topics": statuses}); err != nil {
			return err
		}
	} else {
		for _, s := range statuses {
			printf(cmd, "%-8s %s: %d partitions, cleanup %s\n", s.Status, s.Topic, s.Partitions, s.Cleanup)
		}
	}
	log, err := newLogger(cmd)
	if err != nil {
		return err
	}
	for _, s := range statuses {
		if s.Partitions != s.Wanted {
			log.Warn("topic exists with another number of partitions", "topic", s.Topic, "partitions", s.Partitions,
				"configured", s.Wanted)
		}
	}
	small, err := kafkaclient.SmallTopics(cmd.Context(), client, cfg)
	if err != nil {
		log.Warn("whether the topics take messages of kafka.message_max_bytes is not known", "err", err)
	}
	for _, s := range small {
		log.Warn(s.String())
	}
	return kafkaclient.CheckCopartitioned(cfg.Topics, statuses)
}
