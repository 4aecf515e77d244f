package kafkaclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// ByID is the topic of plumbline's own that so many shards read in place of one that is split for them.
func ByID(cfg *config.Config, topic string, shards int) string {
	return fmt.Sprintf("%s.%s-by-id-%d", cfg.Group, topic, shards)
}

// byID is cfg with those topics in place of predictions and labels, and with no others.
func byID(cfg config.Config, shards int) config.Config {
	own := config.Topics{Logits: ByID(&cfg, cfg.Topics.Logits, shards)}
	if cfg.Topics.Labels != "" {
		own.Labels = ByID(&cfg, cfg.Topics.Labels, shards)
	}
	cfg.Topics, cfg.Inputs, cfg.Kafka.Partitions = own, nil, shards
	return cfg
}

// CreateByID makes the topics that so many shards read where topics are split for them. Some may be there.
func CreateByID(ctx context.Context, client *kafka.Client, cfg config.Config, shards int) ([]TopicStatus, error) {
	return createTopics(ctx, client, byID(cfg, shards))
}

// FindByID returns such topics, for whatever number of shards, as far as this user may see them: those for most shards
// first.
func FindByID(ctx context.Context, client *kafka.Client, cfg *config.Config) ([]TopicStatus, error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, fmt.Errorf("metadata of all topics: %w", err)
	}
	var out []TopicStatus
	for _, t := range meta.Topics {
		n := len(t.Partitions)
		if own := byID(*cfg, n).Topics; t.Name == own.Logits || t.Name == own.Labels {
			out = append(out, TopicStatus{Topic: t.Name, Status: exists, Partitions: n, Wanted: n})
		}
	}
	slices.SortFunc(out, func(a, b TopicStatus) int { return cmp.Compare(b.Partitions, a.Partitions) })
	return out, nil
}

// withByID are the topics that cfg names, and those that shards read in their place, as far as this user may see them.
func withByID(ctx context.Context, client *kafka.Client, cfg config.Config) []kafka.TopicConfig {
	out := topicConfigs(cfg)
	if found, err := FindByID(ctx, client, &cfg); err == nil && len(found) > 0 {
		out = append(out, topicConfigs(byID(cfg, found[0].Partitions))...)
	}
	return out
}

// Shards is of how many shards a deployment is one, as far as topics and groups tell, and whether topics are split for
// them. If it has not begun it has as many as the topic of predictions has partitions, or will have.
func Shards(ctx context.Context, client *kafka.Client, cfg *config.Config) (shards int, split bool) {
	if found, err := FindByID(ctx, client, cfg); err == nil && len(found) > 0 {
		return found[0].Partitions, true
	}
	n, err := kafkaio.Partitions(ctx, client, cfg.Topics.Logits)
	if err != nil {
		n = cfg.Kafka.Partitions
	}
	return n, cfg.Splits() && !beganByID(ctx, client, cfg, n)
}

// groupPatience bounds the wait for a group's coordinator.
const groupPatience = 5 * time.Second

// beganByID reports whether shards have read the producers' topic of predictions themselves. They go on so, whatever
// topics.keyed says by now.
func beganByID(ctx context.Context, client *kafka.Client, cfg *config.Config, partitions int) bool {
	ctx, cancel := context.WithTimeout(ctx, groupPatience)
	defer cancel()
	for p := range partitions {
		at, err := kafkaio.Committed(ctx, client, cfg.Group+"-shards", cfg.Topics.Logits, p)
		if err != nil || at >= 0 {
			return err == nil
		}
	}
	return false
}
