package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/progress"
)

// replayFlags are the flags of `plumbline replay`.
type replayFlags struct {
	feeds    *feedFlags
	ofFiles  []string // flags that have no effect on topics
	topic    bool
	from, to string
	shards   int
}

func newReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [FILE[:array]...]",
		Short: "Run the same configuration over stored files or a range of the topics, as fast as possible",
		Long:  help("replay"),
		RunE:  func(cmd *cobra.Command, files []string) error { return runReplay(cmd, files, f) },
	}
	f.feeds = addFeedFlags(cmd)
	flags := cmd.Flags()
	flags.VisitAll(func(of *pflag.Flag) { f.ofFiles = append(f.ofFiles, of.Name) })
	f.ofFiles = append(f.ofFiles, "shards")
	flags.BoolVar(&f.topic, "topic", false, "read the configured logits and labels topics instead of files")
	flags.StringVar(&f.from, "from", "earliest", "`position` to start at: earliest, an offset or a time (RFC 3339)")
	flags.StringVar(&f.to, "to", "latest", "`position` to stop before: latest, an offset or a time (RFC 3339)")
	flags.IntVar(&f.shards, "shards", 1, "shards over which files are split by id; the hash does not depend on it")
	return cmd
}

func runReplay(cmd *cobra.Command, files []string, f replayFlags) error {
	if f.topic == (len(files) > 0) {
		return cli.Usagef("replay needs files or --topic, and not both")
	}
	for _, name := range []string{"from", "to"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && !f.topic {
			return cli.Usagef("--%s %q: only with --topic; of files --skip and --limit choose rows", name, flag.Value)
		}
	}
	for _, name := range f.ofFiles {
		if flag := cmd.Flags().Lookup(name); flag.Changed && f.topic {
			return cli.Usagef("--%s %q: only with files; of topics --from and --to choose rows", name, flag.Value)
		}
	}
	const mostShards = 1 << 12
	if f.shards < 1 || f.shards > mostShards {
		return cli.Usagef("--shards %d: must be 1 to %d", f.shards, mostShards)
	}
	cfg, log, err := setup(cmd)
	if err != nil {
		return err
	}
	r := engine.NewReplay(cfg, log)
	r.Unseen = !jsonOutput(cmd)
	defer r.Close()
	started := time.Now()
	if f.topic {
		err = f.readTopics(cmd, r)
	} else {
		err = f.readFiles(cmd, r, files)
	}
	if err == nil {
		err = r.Finish(cmd.Context())
	}
	if err != nil {
		return err
	}
	return printReplay(cmd, r, time.Since(started))
}

// readFiles replays files with a bar of their rows.
func (f replayFlags) readFiles(cmd *cobra.Command, r *engine.Replay, files []string) error {
	if err := f.feeds.check(); err != nil {
		return err
	}
	in, total, err := f.feeds.open(files, r.Config, f.shards)
	if err != nil {
		return err
	}
	bar := progress.New(cmd.ErrOrStderr(), total, "replay", "rows")
	defer bar.Finish()
	return r.Files(cmd.Context(), in, f.shards, bar.Add)
}

// readTopics replays a range of the topics with a bar of its messages.
func (f replayFlags) readTopics(cmd *cobra.Command, r *engine.Replay) error {
	var of engine.TopicRange
	var err error
	if of.From, err = engine.ParsePosition(f.from); err != nil {
		return cli.Usagef("--from %q: %w", f.from, err)
	}
	if of.To, err = engine.ParsePosition(f.to); err != nil {
		return cli.Usagef("--to %q: %w", f.to, err)
	}
	var bar *progress.Bar
	of.Begin = func(messages int64) { bar = progress.New(cmd.ErrOrStderr(), messages, "replay", "messages") }
	of.Done = func(messages int64) { bar.Add(messages) }
	defer func() { bar.Finish() }()
	return r.Topics(cmd.Context(), of)
}

func printReplay(cmd *cobra.Command, r *engine.Replay, took time.Duration) error {
	res, err := r.Result(took)
	if err != nil {
		return err
	}
	if jsonOutput(cmd) {
		return errors.Join(printJSON(cmd, res), res.NoRows())
	}
	printf(cmd, "%d rows, %d labelled, %.1f s, %.0f rows/s\n", res.Rows, res.Labelled, res.Seconds, res.RowsPerSec)
	if left := res.LeftOut(); left != "" {
		printf(cmd, "left out: %s\n", left)
	}
	for _, line := range res.AlertLines() {
		printf(cmd, "%s\n", line)
	}
	for _, c := range res.Calibrators {
		printf(cmd, "%s  %s/%s  refit (%s): %s\n", c.DecidedAt, c.Model, c.Version, c.Reason, c.Outcome)
	}
	for _, skip := range res.Unequal {
		printf(cmd, "not equal to the live run: %s\n", skip)
	}
	if res.StateHash != "" { // without rows there is no state
		printf(cmd, "state hash %s\n", res.StateHash)
	}
	return res.NoRows()
}
