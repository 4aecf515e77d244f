package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// followCalibrators reads the compacted calibrators topic, from its start and for ever, into the table that shards
// apply and the history behind the page: every process needs all of them, so there is no group.
func (r *KafkaRun) followCalibrators(ctx context.Context, g *errgroup.Group) error {
	n, err := kafkaio.Partitions(ctx, r.Client, r.Config.Topics.Calibrators)
	if err != nil {
		return err
	}
	r.following.Store(int32(n)) //nolint:gosec // a topic's partitions
	for p := range n {
		src := kafkaio.NewSource(kafkaio.Spec{Client: r.Client, Topics: map[pipeline.Input]string{pipeline.Panes: r.Config.Topics.Calibrators}, Partition: p,
			Next: map[pipeline.Input]int64{pipeline.Panes: -1}, MaxBytes: r.Config.Kafka.FetchMax, IdleTimeout: time.Millisecond, Log: r.Log})
		g.Go(func() error {
			defer src.Close()
			return r.follow(ctx, src)
		})
	}
	return nil
}

func (r *KafkaRun) follow(ctx context.Context, src pipeline.Source) error {
	for first := true; ; {
		rec, err := src.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Idle { // at the end of what was published
			if first {
				r.following.Add(-1)
				first = false
			}
			continue
		}
		var c record.Calibrator
		err = json.Unmarshal(rec.Value, &c)
		if err == nil {
			err = r.addCalibrator(c)
		}
		if err != nil {
			r.Log.Error("calibrator cannot be used", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "err", err)
		}
	}
}
