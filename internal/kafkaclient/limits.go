package kafkaclient

import (
	"context"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
)

// SmallTopic is a topic that is written to and takes shorter messages than the configuration allows: the broker would
// refuse the longer ones.
type SmallTopic struct {
	Topic string `json:"topic"`
	Takes int    `json:"max_message_bytes"` // of a record batch
	Wants int    `json:"message_max_bytes"` // as configured
}

func (s SmallTopic) String() string {
	return fmt.Sprintf("topic %s takes at most %d bytes (max.message.bytes), kafka.message_max_bytes is %d: longer "+
		"messages will be refused and be missing. Raise the one to %d or more, or lower the other", s.Topic, s.Takes,
		s.Wants, s.Wants+BatchOverhead)
}

const messageBytes = "max.message.bytes"

// SmallTopics asks the brokers for the limits of the topics of cfg that are written to. The error names those whose
// settings the brokers do not show to this user.
func SmallTopics(ctx context.Context, client *kafka.Client, cfg config.Config) ([]SmallTopic, error) {
	t, read := &cfg.Topics, unused(&cfg)
	read[t.Logits], read[t.Labels], read[t.Finetune] = true, true, !cfg.Trigger.Enabled
	for _, topic := range cfg.InputTopics() {
		read[topic] = true
	}
	if cfg.Checkpoints.Store != pipeline.StoreTopic {
		read[cfg.Topics.Checkpoints] = true
	}
	var written []string
	for _, t := range withByID(ctx, client, cfg) {
		if !read[t.Topic] {
			written = append(written, t.Topic)
		}
	}
	has, err := settings(ctx, client, written, messageBytes)
	var small []SmallTopic
	for _, topic := range written {
		if n, err := strconv.Atoi(has[topic][messageBytes]); err == nil && n < cfg.Kafka.MessageMax {
			small = append(small, SmallTopic{topic, n, cfg.Kafka.MessageMax})
		}
	}
	return small, err
}
