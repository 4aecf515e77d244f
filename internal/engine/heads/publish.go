package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// PublishOrder writes an order to the heads topic, and a copy to the decisions topic: one that fails takes nothing
// back.
func PublishOrder(ctx context.Context, client *kafka.Client, cfg config.Config, o record.Order,
	warn func(string)) error {
	publish, err := Publisher(ctx, client, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	value, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := publish(ctx, o.ID, record.HeadKey(o.ID, o.Kind), value); err != nil {
		return err
	}
	if err := decisionlog.RecordOrder(ctx, client, cfg, o); err != nil {
		warn(fmt.Sprintf("the order is given, but the history does not have it: %v", err))
	}
	return nil
}

// Allows refuses orders about what is not there, or cannot be done.
func (t *State) Allows(o record.Order) error {
	for _, h := range t.Current().Heads {
		if h.ID != o.ID {
			continue
		}
		trained := h.Result != nil && h.Result.Outcome == record.OutcomeTrained
		switch {
		case o.Kind == record.HeadCancel && h.Result != nil:
			return fmt.Errorf("%s: its job has ended: %s", o.ID, h.Result.Outcome)
		case o.Kind == record.HeadOrder && !trained:
			return fmt.Errorf("%s: there is no trained head: it is %s", o.ID, h.State)
		}
		return nil
	}
	return fmt.Errorf("%s: there is no such head; plumbline heads list has all", o.ID)
}

// Publisher writes to the heads topic; all records of a head go to one partition, whose order decides.
func Publisher(ctx context.Context, client *kafka.Client, cfg config.Config,
	log *slog.Logger) (func(ctx context.Context, id, key string, value []byte) error, error) {
	topic := cfg.Topics.Heads
	if topic == "" || cfg.Topics.Finetune == "" {
		return nil, errors.New("topics.finetune and topics.heads must be set")
	}
	n, err := kafkaio.Partitions(ctx, client, topic)
	if err != nil {
		return nil, kafkaclient.Explain(ctx, cfg.Kafka, err)
	}
	sink, err := kafkaio.NewSink(ctx, client, map[pipeline.Stream]string{pipeline.StreamHeads: topic},
		cfg.Kafka.MessageMax, log)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, id, key string, value []byte) error {
		//nolint:gosec // a topic's partitions
		err := sink.Write(ctx, []pipeline.Message{{Stream: pipeline.StreamHeads,
			Partition: int32(murmur.PartitionOf([]byte(id), n)), Key: []byte(key), Value: value}})
		if errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.InvalidMessageSize) {
			err = fmt.Errorf("%w: %w", service.ErrTooLarge, err)
		}
		return err
	}, nil
}
