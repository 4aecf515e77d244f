package engine

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// tail reads topics from their start and for ever: every process needs all of their records.
func (r *KafkaRun) tail(ctx context.Context, g *errgroup.Group, topics []kafkaio.Tailed, caughtUp func()) error {
	if err := kafkaio.Tail(ctx, g, r.tailSpec(), topics, caughtUp); err != nil {
		return kafkaclient.Explain(ctx, r.Config.Kafka, err)
	}
	return nil
}

func (r *KafkaRun) tailSpec() kafkaio.TailSpec {
	return kafkaio.TailSpec{Client: r.Client, MaxBytes: r.Config.Kafka.FetchMax, Log: r.Log}
}

// follow reads what every process needs: calibrators, heads, decisions. tuned is closed when it has all heads.
func (r *KafkaRun) follow(ctx context.Context, g *errgroup.Group) (tuned <-chan struct{}, err error) {
	if err := r.followCalibrators(ctx, g); err != nil {
		return nil, err
	}
	if tuned, err = r.followTuning(ctx, g); err != nil {
		return nil, err
	}
	return tuned, r.followPast(ctx, g)
}

// followCalibrators reads the compacted calibrators topic into the table that shards apply and the history behind the
// page.
func (r *KafkaRun) followCalibrators(ctx context.Context, g *errgroup.Group) error {
	return r.tail(ctx, g, []kafkaio.Tailed{{Topic: r.Config.Topics.Calibrators, Take: r.takeCalibrator}},
		func() { r.following.Store(false) })
}

func (r *KafkaRun) takeCalibrator(rec *pipeline.Record) error {
	c, err := record.DecodeCalibrators(rec.Value)
	if err != nil {
		return err
	}
	return r.showRecord(c)
}
