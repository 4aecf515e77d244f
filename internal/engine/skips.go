package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// skips are the records that were skipped live, with the reason: a replay skips them, too.
type skips map[attempts.Place]string

// readSkips reads the decisions topic. A record that cannot be read is none.
func readSkips(ctx context.Context, cfg config.Config, spec kafkaio.TailSpec) (skips, error) {
	out := skips{}
	topic := cfg.Topics.Decisions
	if topic == "" {
		return out, nil
	}
	err := kafkaio.ReadTopic(ctx, spec, topic, func(r *pipeline.Record) {
		var d record.Decision
		var s record.Skip
		if json.Unmarshal(r.Value, &d) != nil || d.Kind != record.DecisionSkip || json.Unmarshal(d.Record, &s) != nil {
			return
		}
		out[attempts.Place{Topic: s.Topic, Partition: s.Partition, Offset: s.Offset}] = s.Why
	})
	if err != nil {
		err = kafkaclient.Explain(ctx, cfg.Kafka, fmt.Errorf("topics.decisions: %w", err))
	}
	return out, err
}

// has tells whether a record was skipped, and why.
func (s skips) has(r *pipeline.Record) (why string, ok bool) {
	if r.Idle || r.Paused {
		return "", false
	}
	why, ok = s[attempts.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}]
	return why, ok
}
