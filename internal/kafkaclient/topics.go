package kafkaclient

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
)

// Partitions asks for the number of partitions of a topic that exists.
func Partitions(ctx context.Context, client *kafka.Client, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, MetadataWait)
	defer cancel()
	for {
		meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return 0, fmt.Errorf("metadata of topic %s: %w", topic, err)
		}
		if len(meta.Topics) == 1 && meta.Topics[0].Error == nil && len(meta.Topics[0].Partitions) > 0 {
			return len(meta.Topics[0].Partitions), nil
		}
		select {
		case <-ctx.Done():
			if len(meta.Topics) == 1 && meta.Topics[0].Error != nil {
				return 0, fmt.Errorf("metadata of topic %s: %w", topic, meta.Topics[0].Error)
			}
			return 0, fmt.Errorf("metadata of topic %s: %w", topic, kafka.UnknownTopicOrPartition)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// InputPartitions is the number of partitions of the logits topic, which the labels topic must have too.
func InputPartitions(ctx context.Context, client *kafka.Client, t config.Topics) (int, error) {
	n, err := Partitions(ctx, client, t.Logits)
	if err != nil || t.Labels == "" {
		return n, err
	}
	m, err := Partitions(ctx, client, t.Labels)
	if err == nil && m != n {
		err = fmt.Errorf("topics %s with %d partitions and %s with %d: must have the same number", t.Logits, n,
			t.Labels, m)
	}
	return n, err
}

// MetadataWait bounds how long a topic that was just made may be unknown to the broker that is asked.
const MetadataWait = 10 * time.Second
