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

// SmallTopics asks the brokers for the limits of the topics of cfg that are written to.
func SmallTopics(ctx context.Context, client *kafka.Client, cfg config.Config) ([]SmallTopic, error) {
	t := &cfg.Topics
	read := map[string]bool{
		t.Logits:     true,
		t.Labels:     true,
		t.Calibrated: !cfg.Calibrated.Enabled,
		t.Finetune:   !cfg.Trigger.Enabled,
		t.Heads:      !cfg.Trigger.Enabled && !cfg.Heads.Shadow,
	}
	for _, topic := range cfg.InputTopics() {
		read[topic] = true
	}
	if cfg.Checkpoints.Store != pipeline.StoreTopic {
		read[cfg.Topics.Checkpoints] = true
	}
	req := &kafka.DescribeConfigsRequest{}
	for _, t := range topicConfigs(cfg) {
		if !read[t.Topic] {
			req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: t.Topic,
				ConfigNames: []string{"max.message.bytes"}})
		}
	}
	resp, err := client.DescribeConfigs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("limits of the topics: %w", err)
	}
	var small []SmallTopic
	for _, r := range resp.Resources {
		if r.Error != nil {
			return nil, fmt.Errorf("limits of topic %s: %w", r.ResourceName, r.Error)
		}
		for _, e := range r.ConfigEntries {
			n, err := strconv.Atoi(e.ConfigValue)
			if e.ConfigName == "max.message.bytes" && err == nil && n < cfg.Kafka.MessageMax {
				small = append(small, SmallTopic{r.ResourceName, n, cfg.Kafka.MessageMax})
			}
		}
	}
	return small, nil
}
