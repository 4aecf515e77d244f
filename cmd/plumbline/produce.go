package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkaclient"
)

// produceSummary is what `plumbline produce --json` prints.
type produceSummary struct {
	Rows           int64   `json:"rows"`
	Labels         int64   `json:"labels"`
	LogitsMessages int64   `json:"logits_messages"` // control messages are not counted
	LabelMessages  int64   `json:"label_messages"`
	Bytes          int64   `json:"bytes"`
	Partitions     int     `json:"partitions"`
	FirstEvent     string  `json:"first_event"` // event times of the messages
	LastEvent      string  `json:"last_event"`
	Seconds        float64 `json:"seconds"`
}

func newProduceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "produce FILE[:array]...",
		Short: "Send the rows of files to the logits and labels topics",
		Long: "Produce sends the rows of npz, Arrow, Parquet and CSV files, one FILE after another, as a model server and its\n" +
			"label source would: Arrow batches by partition of the id, labels after a delay. The same flags and seed send the same messages.",
		Example: "  plumbline produce test.npz:resnet20 --labels test_labels --shuffle --label-delay 0s-5m\n" +
			"  plumbline produce clean.parquet drifted.parquet --rate 500",
		Args: usageArgs(cobra.MinimumNArgs(1)),
	}
	feeds := addFeedFlags(cmd)
	rate := cmd.Flags().Float64("rate", 0, "rows per second of wall clock; 0: as fast as possible")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if !(*rate >= 0) {
			return usageErrorf("--rate %v: must be 0 or more rows per second", *rate)
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
		return err
	}
	f, total, err := feeds.open(files, cfg, partitions, time.Now())
	if err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), total, "produce", "rows")
	summary, err := produceFeed(cmd.Context(), client, cfg.Topics, f, rate, bar)
	bar.finish()
	summary.Partitions = partitions
	if err != nil {
		return fmt.Errorf("%w (%d rows were sent, not all acknowledged)", err, summary.Rows)
	}
	if jsonOutput(cmd) {
		return printJSON(cmd, summary)
	}
	printf(cmd, "%d rows, %d labels in %d + %d messages, %.1f MB, %s to %s, %.1f s, %.0f rows/s\n", summary.Rows, summary.Labels,
		summary.LogitsMessages, summary.LabelMessages, float64(summary.Bytes)/1e6, summary.FirstEvent, summary.LastEvent,
		summary.Seconds, float64(summary.Rows)/summary.Seconds)
	return nil
}

// produceFeed sends all of f, at most rate rows a second where rate > 0, and returns what was sent: all of it is
// acknowledged where there is no error.
func produceFeed(ctx context.Context, client *kafka.Client, t config.Topics, f *feed.Feed, rate float64, bar *progress) (produceSummary, error) {
	var s produceSummary
	start := time.Now()
	p := newProducer(ctx, client)
	err := s.sendAll(ctx, p, t, f, pace{start, rate}, bar)
	// The error of a lane is the cause of one in sending.
	if cause := p.close(); cause != nil {
		err = cause
	}
	s.Seconds = time.Since(start).Seconds()
	return s, err
}

func (s *produceSummary) sendAll(ctx context.Context, p *producer, t config.Topics, f *feed.Feed, at pace, bar *progress) error {
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := at.wait(ctx, s.Rows); err != nil {
			return err
		}
		topic := t.Logits
		if m.Stream == feed.Labels {
			topic = t.Labels
		}
		r := produceRecord{Time: time.Unix(0, m.Time).UTC(), Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := p.send(topic, int(m.Partition), r); err != nil {
			return err
		}
		s.count(m)
		if m.Stream == feed.Logits {
			bar.add(int64(m.Rows))
		}
	}
}

func (s *produceSummary) count(m feed.Message) {
	s.Bytes += int64(len(m.Value))
	if m.Rows == 0 {
		return
	}
	if m.Stream == feed.Logits {
		s.Rows += int64(m.Rows)
		s.LogitsMessages++
	} else {
		s.Labels += int64(m.Rows)
		s.LabelMessages++
	}
	at := time.Unix(0, m.Time).UTC().Format(time.RFC3339Nano)
	if s.FirstEvent == "" {
		s.FirstEvent = at
	}
	s.LastEvent = at
}

// pace spreads rows evenly over the wall clock.
type pace struct {
	start time.Time
	rate  float64 // rows per second; 0 = no limit
}

// wait returns when row number n is due.
func (p pace) wait(ctx context.Context, n int64) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	due := p.start.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	left := time.Until(due)
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
