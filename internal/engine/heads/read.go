package heads

import (
	"context"
	"errors"
	"log/slog"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Read reads the finetune and heads topics to their end.
func Read(ctx context.Context, cfg config.Config) (*State, *kafka.Client, error) {
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return nil, nil, err
	}
	t := New(nil, slog.New(slog.DiscardHandler))
	if cfg.Topics.Finetune == "" || cfg.Topics.Heads == "" {
		return nil, nil, errors.New("topics.finetune and topics.heads must be set")
	}
	// A record that cannot be used is left out, as it is by all others.
	spec := kafkaio.TailSpec{Client: client, MaxBytes: cfg.Kafka.FetchMax, Log: slog.New(slog.DiscardHandler)}
	if err := kafkaio.ReadTopic(ctx, spec, cfg.Topics.Finetune,
		func(r *pipeline.Record) { _ = t.ReadRequest(r) }); err != nil {
		return nil, nil, kafkaclient.Explain(ctx, cfg.Kafka, err)
	}
	if err := kafkaio.ReadTopic(ctx, spec, cfg.Topics.Heads,
		func(r *pipeline.Record) { _ = t.ReadRecord(r) }); err != nil {
		return nil, nil, kafkaclient.Explain(ctx, cfg.Kafka, err)
	}
	return t, client, nil
}
