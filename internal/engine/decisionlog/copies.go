package decisionlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Recorder is a sink that writes what was decided to the decisions topic too. The copy is made of the same bytes in
// the same call: it is as durable, and comes again where the original does.
type Recorder struct{ pipeline.Sink }

// Write implements pipeline.Sink.
func (s Recorder) Write(ctx context.Context, ms []pipeline.Message) error {
	out := ms[:len(ms):len(ms)]
	for i := range ms {
		d, ok := ms[i].Record.(record.Decided)
		if !ok {
			continue
		}
		c, err := copyOf(d, &ms[i])
		if err != nil {
			return err
		}
		out = append(out, c)
	}
	return s.Sink.Write(ctx, out)
}

// copyOf is the entry of the decisions topic for an output: in the partition of its model, so that all that was decided
// about a model has one order.
func copyOf(d record.Decided, m *pipeline.Message) (pipeline.Message, error) {
	entry := record.NewDecision(d, m.Value)
	return pipeline.NewMessage(pipeline.StreamHistory, entry.Model, m.Time, entry)
}

// RecordTime bounds the wait for the brokers to take an order for the history: whoever gave it waits too.
const RecordTime = 5 * time.Second

// RecordOrder writes an order about a head to the decisions topic: the heads topic keeps the latest of a head only,
// and none that was refused.
func RecordOrder(ctx context.Context, client *kafka.Client, cfg config.Config, o record.Order) error {
	if cfg.Topics.Decisions == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, RecordTime)
	defer cancel()
	sink, err := kafkaio.NewSink(ctx, client, map[pipeline.Stream]string{pipeline.StreamHistory: cfg.Topics.Decisions},
		cfg.Kafka.MessageMax, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return WriteOrder(ctx, sink, o)
}

// WriteOrder writes an order to a sink that has the decisions topic.
func WriteOrder(ctx context.Context, sink pipeline.Sink, o record.Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	m, err := copyOf(&o, &pipeline.Message{Value: body})
	if err != nil {
		return err
	}
	return sink.Write(ctx, []pipeline.Message{m})
}
