package main

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/engine"
)

func newReplayCommand() *cobra.Command {
	var from, to string
	var topic bool
	shards := 1
	cmd := &cobra.Command{
		Use:   "replay [FILE[:array]...]",
		Short: "Run the same configuration over stored files or a range of the topics, as fast as possible",
		Long: "replay runs the operators of `plumbline run` over files, or with --topic over a range of the logits and labels\n" +
			"topics, writes nothing to Kafka, and ends with the state hash that the live run of the same records has.",
	}
	feeds := addFeedFlags(cmd)
	cmd.Flags().BoolVar(&topic, "topic", false, "read the configured logits and labels topics instead of files")
	cmd.Flags().StringVar(&from, "from", "earliest", "`position` to start at: earliest, an offset or a time (RFC 3339)")
	cmd.Flags().StringVar(&to, "to", "latest", "`position` to stop before: latest, an offset or a time (RFC 3339)")
	cmd.Flags().IntVar(&shards, "shards", 1, "shards that files are split over by id; the hash does not depend on it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if topic == (len(args) > 0) {
			return usageErrorf("replay needs files or --topic, and not both")
		}
		if shards < 1 {
			return usageErrorf("--shards %d: must be at least 1", shards)
		}
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
		r := engine.NewReplay(cfg, log)
		defer r.Close()
		started := time.Now()
		if topic {
			err = replayTopics(ctx, cmd, r, from, to)
		} else {
			err = replayFiles(ctx, cmd, r, feeds, args, shards)
		}
		if err == nil {
			err = r.Finish(ctx)
		}
		if err != nil {
			return err
		}
		return printReplay(cmd, r, time.Since(started))
	}
	return cmd
}

// replayFiles replays files with a bar of their rows.
func replayFiles(ctx context.Context, cmd *cobra.Command, r *engine.Replay, feeds *feedFlags, files []string, shards int) error {
	if err := feeds.check(); err != nil {
		return err
	}
	f, total, err := feeds.open(files, r.Config, shards, time.Now())
	if err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), total, "replay", "rows")
	defer bar.finish()
	return r.Files(ctx, f, shards, bar.add)
}

// replayTopics replays a range of the topics with a bar of its messages.
func replayTopics(ctx context.Context, cmd *cobra.Command, r *engine.Replay, from, to string) error {
	var of engine.TopicRange
	var err error
	if of.From, err = engine.ParsePosition(from); err != nil {
		return usageErrorf("--from %q: %w", from, err)
	}
	if of.To, err = engine.ParsePosition(to); err != nil {
		return usageErrorf("--to %q: %w", to, err)
	}
	var bar *progress
	of.Begin = func(messages int64) { bar = newProgress(cmd.ErrOrStderr(), messages, "replay", "messages") }
	of.Done = func(messages int64) { bar.add(messages) }
	defer func() { bar.finish() }()
	return r.Topics(ctx, of)
}

func printReplay(cmd *cobra.Command, r *engine.Replay, took time.Duration) error {
	res, err := r.Result(took)
	if err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, res)
	}
	printf(cmd, "%d rows, %d labelled, %.1f s, %.0f rows/s\n", res.Rows, res.Labelled, res.Seconds, res.RowsPerSec)
	for _, a := range res.Alerts {
		printf(cmd, "%s  %s/%s %s  %s is %s: %s\n", a.At, a.Model, a.Version, a.Slice, a.Rule, a.State, a.Message)
	}
	for _, c := range res.Calibrators {
		printf(cmd, "%s  %s/%s  refit (%s): %s\n", c.DecidedAt, c.Model, c.Version, c.Reason, c.Outcome)
	}
	printf(cmd, "state hash %s\n", res.StateHash)
	return nil
}
