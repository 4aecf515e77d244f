package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
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
		r := &replay{engine: newEngine(cfg, log)}
		r.replaying = true
		defer r.close()
		started := time.Now()
		if topic {
			err = r.topics(ctx, cmd, from, to)
		} else {
			err = r.files(ctx, cmd, args, feeds, shards)
		}
		if err == nil {
			err = r.settle(ctx)
		}
		if err == nil {
			err = r.endArchives(ctx)
		}
		if err != nil {
			return err
		}
		return r.print(cmd, time.Since(started))
	}
	return cmd
}

// replay is one model task behind any number of shards, in one process and without a broker in between.
type replay struct {
	*engine
	mu     sync.Mutex // the model task's
	model  *model.ModelTask
	offset int64
	shards []*pipeline.Shard
}

func (r *replay) open(shards int) error {
	r.model = r.newModelTask(0)
	r.add("model-0", r.model)
	for i := range shards {
		s, err := r.newShard(i, shards, 1)
		if err != nil {
			return err
		}
		r.shards = append(r.shards, s)
		r.add(taskName("shard", i), s)
	}
	return nil
}

// close removes what the shards keep on disk.
func (r *replay) close() {
	for i, s := range r.shards {
		if err := s.Close(); err != nil {
			r.log.Warn("close", "task", taskName("shard", i), "err", err)
		}
	}
}

// take gives a shard a record, and the model task what comes of it.
func (r *replay) take(ctx context.Context, shard int, rec pipeline.Record) error {
	s := r.shards[shard]
	if err := s.Take(ctx, rec); err != nil {
		return err
	}
	if a := archiveOf(s); a != nil {
		a.ShowAll()
	}
	panes := s.After()
	if len(panes) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range panes {
			err := r.model.Take(ctx, pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: r.offset, Value: m.Value})
			if err != nil {
				return err
			}
			r.offset++
		}
		r.observe(r.model.Outputs())
	}
	s.Written()
	return nil
}

// settle waits for the fits that are due.
func (r *replay) settle(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.model.Settle(ctx); err != nil {
		return err
	}
	r.observe(r.model.Outputs())
	return nil
}

// drain closes what the end of the input leaves open, as exhausted inputs do live.
func (r *replay) drain(ctx context.Context, shard, inputs int) error {
	for in := range inputs {
		if err := r.take(ctx, shard, pipeline.Record{Input: pipeline.Input(in), Idle: true}); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) inputs() int {
	if r.cfg.Topics.Labels == "" {
		return 1
	}
	return 2
}

func (r *replay) files(ctx context.Context, cmd *cobra.Command, files []string, feeds *feedFlags, shards int) error {
	if err := feeds.check(); err != nil {
		return err
	}
	f, total, err := feeds.open(files, r.cfg, shards, time.Now())
	if err != nil {
		return err
	}
	if err := r.open(shards); err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), total, "replay", "rows")
	defer bar.finish()
	if err := r.feed(ctx, f, bar); err != nil {
		return err
	}
	for i := range r.shards {
		if err := r.drain(ctx, i, r.inputs()); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) feed(ctx context.Context, f *feed.Feed, bar *progress) error {
	next := map[string]int64{}
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return r.settle(ctx)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rec := pipeline.Record{Input: pipeline.Input(m.Stream), Topic: m.Stream.String(), Partition: m.Partition, Time: m.Time, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			rec.Headers = append(rec.Headers, pipeline.Header{Key: h.Key, Value: h.Value})
		}
		lane := fmt.Sprintf("%d/%d", m.Stream, m.Partition)
		rec.Offset = next[lane]
		next[lane]++
		if int(m.Stream) < r.inputs() {
			if err := r.take(ctx, int(m.Partition), rec); err != nil {
				return err
			}
		}
		if m.Stream == feed.Logits {
			bar.add(int64(m.Rows))
		}
	}
}

func (r *replay) topics(ctx context.Context, cmd *cobra.Command, from, to string) error {
	client, _, err := newKafkaClient(r.cfg.Kafka)
	if err != nil {
		return err
	}
	n, err := inputPartitions(ctx, client, r.cfg.Topics)
	if err != nil {
		return err
	}
	if err := r.open(n); err != nil {
		return err
	}
	if r.cfg.Heads.Shadow { // those that were there live, from the event times that they say
		if err := readTopic(ctx, client, r.cfg, followed{r.cfg.Topics.Heads, r.tuning.record}); err != nil {
			return fmt.Errorf("topics.heads: %w", err)
		}
	}
	topics := map[pipeline.Input]string{pipeline.Logits: r.cfg.Topics.Logits}
	if r.inputs() == 2 {
		topics[pipeline.Labels] = r.cfg.Topics.Labels
	}
	specs := make([]kafkaio.Spec, n)
	total := int64(0)
	for p := range n {
		specs[p] = kafkaio.Spec{Client: client, Topics: topics, Partition: p, Next: map[pipeline.Input]int64{}, Until: map[pipeline.Input]int64{}, MaxBytes: r.cfg.Kafka.FetchMax, Log: r.log}
		for in, topic := range topics {
			lo, hi, err := offsetRange(ctx, client, topic, p, from, to)
			if err != nil {
				return err
			}
			specs[p].Next[in], specs[p].Until[in] = lo, hi
			total += max(hi-lo, 0)
		}
	}
	bar := newProgress(cmd.ErrOrStderr(), total, "replay", "messages")
	defer bar.finish()
	g, ctx := errgroup.WithContext(ctx)
	for p := range n {
		g.Go(func() error { return r.partition(ctx, specs[p], bar) })
	}
	return g.Wait()
}

func (r *replay) partition(ctx context.Context, spec kafkaio.Spec, bar *progress) error {
	src := kafkaio.NewSource(spec)
	defer src.Close()
	for {
		rec, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r.drain(ctx, spec.Partition, r.inputs())
		}
		if err != nil {
			return err
		}
		if err := r.take(ctx, spec.Partition, rec); err != nil {
			return err
		}
		bar.add(1)
	}
}

// offsetRange turns the positions from and to into offsets of one partition.
func offsetRange(ctx context.Context, c *kafka.Client, topic string, p int, from, to string) (lo, hi int64, err error) {
	first, end, err := kafkaio.Bounds(ctx, c, topic, p)
	if err != nil {
		return 0, 0, err
	}
	if lo, err = position(ctx, c, topic, p, from, first, end); err != nil {
		return 0, 0, fmt.Errorf("--from %q: %w", from, err)
	}
	if hi, err = position(ctx, c, topic, p, to, first, end); err != nil {
		return 0, 0, fmt.Errorf("--to %q: %w", to, err)
	}
	return max(lo, first), min(hi, end), nil
}

func position(ctx context.Context, c *kafka.Client, topic string, p int, s string, first, end int64) (int64, error) {
	switch s {
	case "earliest":
		return first, nil
	case "latest":
		return end, nil
	}
	if o, err := strconv.ParseInt(s, 10, 64); err == nil {
		return o, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, usageErrorf("must be earliest, latest, an offset or a time such as 2026-01-31T12:00:00Z")
	}
	res, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.TimeOffsetOf(p, t)}}})
	if err != nil {
		return 0, err
	}
	for _, po := range res.Topics[topic] {
		for o := range po.Offsets {
			if po.Error == nil && o >= 0 {
				return o, nil
			}
		}
		if po.Error != nil {
			return 0, po.Error
		}
	}
	return end, nil // no record at or after that time
}

// replayResult is what `replay --json` prints.
type replayResult struct {
	StateHash   string              `json:"state_hash"`
	ByModel     map[string]string   `json:"state_hash_by_model"`
	Rows        int64               `json:"rows"`
	Labelled    int64               `json:"labelled"`
	Seconds     float64             `json:"seconds"`
	RowsPerSec  float64             `json:"rows_per_second"`
	Counts      map[string]any      `json:"counts"`
	Alerts      []record.Alert      `json:"alerts"`
	Calibrators []record.Calibrator `json:"calibrators"`
	Snapshots   []record.Snapshot   `json:"snapshots"`
}

func (r *replay) print(cmd *cobra.Command, took time.Duration) error {
	res := replayResult{Seconds: took.Seconds(), Alerts: r.history.Alerts("", "", 1000), Calibrators: r.history.Calibrators("", "", 1000)}
	var err error
	if res.ByModel, err = r.model.Hash(); err != nil {
		return err
	}
	res.StateHash = combineHashes(res.ByModel)
	for _, s := range r.shards {
		s.Report(true, true)()
	}
	r.model.Report(true, true)()
	tasks, _ := r.statuses()
	res.Counts = countTree(tasks)
	res.Rows, _ = res.Counts[pipeline.CountPredictions].(int64)
	res.Labelled, _ = res.Counts[pipeline.CountLabelled].(int64)
	res.RowsPerSec = float64(res.Rows) / res.Seconds
	for _, info := range r.history.Series() {
		if s, ok := r.history.Latest(info.SnapshotKey); ok {
			res.Snapshots = append(res.Snapshots, s)
		}
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
