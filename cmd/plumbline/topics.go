package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkaclient"
)

func newTopicsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "topics", Short: "Make the Kafka topics"}
	cli.Group(cmd)
	cmd.AddCommand(&cobra.Command{
		Use:   "create",
		Short: "Make all topics of the configuration; those that exist are checked and left as they are",
		Args:  cli.Args(cobra.NoArgs),
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
			printf(cmd, "%-8s %s: %d partitions, cleanup %s\n", s.Status, s.Topic, s.Partitions,
				cmp.Or(s.Cleanup, "not known"))
		}
	}
	log, err := newLogger(cmd)
	if err != nil {
		return err
	}
	own := func(topic string) bool { // those of inputs may have any number
		return topic == cfg.Topics.Logits || topic == cfg.Topics.Labels || !slices.Contains(cfg.InputTopics(), topic)
	}
	for _, s := range statuses {
		if s.Partitions != s.Wanted && own(s.Topic) {
			log.Warn("topic exists with another number of partitions", "topic", s.Topic, "partitions", s.Partitions,
				"configured", s.Wanted)
		}
	}
	kafkaclient.WarnOfTopics(cmd.Context(), client, cfg, log)
	if cfg.Splits() {
		return nil
	}
	return kafkaclient.CheckCopartitioned(cfg.Topics, statuses)
}

func newScaleCommand() *cobra.Command {
	var o deployment.ScaleOrder
	cmd := &cobra.Command{
		Use:     "scale",
		Short:   "Have more shards, and more partitions, while the stream goes on",
		Long:    help("scale"),
		Example: "  plumbline scale -c plumbline.yaml --partitions 12 --by ann --why 'twice the traffic'",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runScale(cmd, o) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Partitions, "partitions", 0, "new `number` of shards and partitions")
	flags.StringVar(&o.By, "by", userName(), "`name` of the person who decides (default: the user)")
	flags.StringVar(&o.Why, "why", "", "`reason`, kept with the decision")
	return cmd
}

func runScale(cmd *cobra.Command, o deployment.ScaleOrder) error {
	cfg, log, err := setup(cmd)
	if err != nil {
		return err
	}
	switch {
	case o.Partitions < 1:
		return cli.Usagef("--partitions %d: must be 1 or more", o.Partitions)
	case strings.TrimSpace(o.Why) == "":
		return cli.Usagef("--why: must say why")
	case strings.TrimSpace(o.By) == "":
		return cli.Usagef("--by: must name who decides")
	}
	tell := func(text string) { printf(cmd, "%s\n", text) }
	if jsonOutput(cmd) {
		tell = func(string) {}
	}
	if err := deployment.New(&cfg, log).Scale(cmd.Context(), o, tell); err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, map[string]any{"partitions": o.Partitions})
	}
	printf(cmd, "there are %d shards\n", o.Partitions)
	return nil
}
