package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// TopicStatus is one topic in `plumbline topics create --json`.
type TopicStatus struct {
	Topic      string `json:"topic"`
	Status     string `json:"status"` // created | exists
	Partitions int    `json:"partitions"`
	Wanted     int    `json:"wanted_partitions"`
	Cleanup    string `json:"cleanup_policy"` // "" where the brokers do not show it to this user
}

const exists = "exists"

// CheckCopartitioned holds the invariant of the join: a prediction and its label have one partition number.
func CheckCopartitioned(t config.Topics, statuses []TopicStatus) error {
	partitions := map[string]int{}
	for _, s := range statuses {
		partitions[s.Topic] = s.Partitions
	}
	if t.Labels != "" && partitions[t.Labels] != partitions[t.Logits] {
		return fmt.Errorf("topics %s with %d partitions and %s with %d: must have the same number, "+
			"so that labels find their predictions", t.Logits, partitions[t.Logits], t.Labels, partitions[t.Labels])
	}
	return nil
}

// topicConfigs are the topics that cfg names, in its order, with their settings. What this program decides has the
// broker's time: brokers refuse timestamps that are an hour ahead of theirs, so a process whose clock is off, or event
// times ahead of it, would stop at the first record.
func topicConfigs(cfg config.Config) []kafka.TopicConfig {
	t := cfg.Topics
	var out []kafka.TopicConfig
	const sender, broker = "CreateTime", "LogAppendTime"
	type made struct{ name, cleanup, time string }
	list := []made{
		{t.Logits, "delete", sender}, {t.Labels, "delete", sender}, {t.Panes, "delete", broker},
		{t.Snapshots, "delete", broker},
		{t.Calibrators, "compact", broker}, {t.Alerts, "compact,delete", broker}, {t.Decisions, "delete", broker},
		{t.Finetune, "delete", broker}, {t.Heads, "compact", broker}, {t.Calibrated, "delete", sender},
		{t.DeadLetter, "delete", broker},
		{t.Checkpoints, "compact", broker},
	}
	for _, name := range cfg.InputTopics() {
		if name != t.Logits && name != t.Labels {
			list = append(list, made{name, "delete", sender})
		}
	}
	for _, e := range list {
		if e.name == "" || e.name == t.Checkpoints && cfg.Checkpoints.Store != pipeline.StoreTopic {
			continue
		}
		entries := []kafka.ConfigEntry{
			{ConfigName: "cleanup.policy", ConfigValue: e.cleanup},
			{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(cfg.Kafka.MessageMax + BatchOverhead)},
			{ConfigName: timestampType, ConfigValue: e.time},
		}
		if e.name == t.Decisions { // what the history is rebuilt from
			entries = append(entries, kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: "-1"})
		}
		if e.name == t.Calibrators {
			// Corrections come with the panes, and only segments that have ended are compacted. Some hosted brokers
			// refuse shorter ones.
			entries = append(entries, kafka.ConfigEntry{ConfigName: "segment.ms", ConfigValue: "14400000"})
		}
		out = append(out, kafka.TopicConfig{Topic: e.name, NumPartitions: cfg.Kafka.Partitions,
			ReplicationFactor: cfg.Kafka.Replication, ConfigEntries: entries})
	}
	return out
}

// How long a cluster may take to choose who leads what, and between two looks at it.
const (
	choosing     = 30 * time.Second
	choosingPoll = 500 * time.Millisecond
)

// passing are the answers of a cluster that is starting or choosing leaders, where no other cause is known; one of them
// is none at all, of the broker that has gone.
func passing(err error) bool {
	var known *why
	if errors.As(err, &known) {
		return false
	}
	for _, e := range []error{kafka.BrokerNotAvailable, kafka.LeaderNotAvailable, kafka.NotController,
		kafka.RequestTimedOut, kafka.NetworkException, kafka.NotLeaderForPartition, kafka.ReplicaNotAvailable} {
		if errors.Is(err, e) {
			return true
		}
	}
	var none *net.OpError
	return errors.As(err, &none) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Settled tries again while a cluster answers that it is starting or choosing leaders, and returns what try does then.
// It tells once that it waits; tell may be nil.
func Settled(ctx context.Context, tell func(error), try func() error) error {
	for until := time.Now().Add(choosing); ; {
		err := try()
		if err == nil || !passing(err) || time.Now().After(until) {
			return err
		}
		if tell != nil {
			tell(err)
			tell = nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(choosingPoll):
		}
	}
}

// CreateTopics makes the topics of cfg that do not exist yet and returns the state of all. Run would make those by id,
// too; here they are for users who may not.
func CreateTopics(ctx context.Context, client *kafka.Client, cfg config.Config) ([]TopicStatus, error) {
	statuses, err := createTopics(ctx, client, cfg)
	if err != nil || !cfg.Splits() {
		return statuses, err
	}
	shards, split := Shards(ctx, client, &cfg)
	if !split {
		return statuses, nil
	}
	byID, err := CreateByID(ctx, client, cfg, shards)
	return append(statuses, byID...), err
}

// createTopics makes those that cfg names. While the cluster chooses its leaders it tries again.
func createTopics(ctx context.Context, client *kafka.Client, cfg config.Config) ([]TopicStatus, error) {
	topics, made := topicConfigs(cfg), map[string]bool{}
	var statuses []TopicStatus
	err := Settled(ctx, nil, func() (err error) {
		if statuses, err = tryCreate(ctx, client, topics, made); err == nil {
			err = WaitForLeaders(ctx, client, topics)
		}
		if passing(err) {
			if cause := findCause(ctx, cfg.Kafka); cause != "" {
				return &why{cause, err}
			}
		}
		return err
	})
	return statuses, Explain(ctx, cfg.Kafka, err)
}

// tryCreate asks once; made has the topics that earlier calls made.
func tryCreate(ctx context.Context, client *kafka.Client, topics []kafka.TopicConfig,
	made map[string]bool) ([]TopicStatus, error) {
	resp, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("create topics: %w", err)
	}
	var statuses []TopicStatus
	var exist []string
	var errs []error
	for _, t := range topics {
		s := TopicStatus{Topic: t.Topic, Status: "created", Partitions: t.NumPartitions, Wanted: t.NumPartitions,
			Cleanup: t.ConfigEntries[0].ConfigValue}
		switch err := resp.Errors[t.Topic]; {
		case err == nil:
			made[t.Topic] = true
		case !errors.Is(err, kafka.TopicAlreadyExists) && !isThere(ctx, client, t.Topic, err):
			errs = append(errs, fmt.Errorf("create topic %s with %d partitions, replication %d: %w", t.Topic,
				t.NumPartitions, t.ReplicationFactor, err))
		case !made[t.Topic]:
			s.Status = exists
			exist = append(exist, t.Topic)
			if s.Partitions, err = Partitions(ctx, client, t.Topic); err != nil {
				errs = append(errs, err)
			}
		}
		statuses = append(statuses, s)
	}
	has, _ := settings(ctx, client, exist, cleanup) // UnfitTopics says why one is not shown
	for i := range statuses {
		if s := &statuses[i]; s.Status == exists {
			s.Cleanup = has[s.Topic][cleanup]
		}
	}
	return statuses, errors.Join(errs...)
}

// isThere reports whether a topic that this user may not make need not be made: brokers look at rights first.
func isThere(ctx context.Context, client *kafka.Client, topic string, err error) bool {
	if !errors.Is(err, kafka.TopicAuthorizationFailed) {
		return false
	}
	n, err := kafkaio.Partitions(ctx, client, topic)
	return err == nil && n > 0
}

// NotToMake returns those of the topics that this user may not make. Nothing is made.
func NotToMake(ctx context.Context, client *kafka.Client, topics []string) ([]string, error) {
	req := &kafka.CreateTopicsRequest{ValidateOnly: true}
	for _, t := range topics {
		req.Topics = append(req.Topics, kafka.TopicConfig{Topic: t, NumPartitions: 1, ReplicationFactor: 1})
	}
	resp, err := client.CreateTopics(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("ask who may create topics: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(topics), func(t string) bool {
		return !errors.Is(resp.Errors[t], kafka.TopicAuthorizationFailed)
	}), nil
}

// WaitForLeaders returns when every partition of the topics answers: until then producers and `run` would only
// find errors to try again on.
func WaitForLeaders(ctx context.Context, client *kafka.Client, topics []kafka.TopicConfig) error {
	ctx, cancel := context.WithTimeout(ctx, choosing)
	defer cancel()
	for _, t := range topics {
		n, err := Partitions(ctx, client, t.Topic)
		if err != nil {
			return err
		}
		for p := range n {
			if _, _, err := Bounds(ctx, client, t.Topic, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bounds is kafkaio.Bounds of a partition that may be without a leader: its topic was just made, or a broker has gone.
func Bounds(ctx context.Context, client *kafka.Client, topic string, partition int) (first, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, choosing)
	defer cancel()
	for {
		first, end, err = kafkaio.Bounds(ctx, client, topic, partition)
		var answer kafka.Error
		if err == nil || errors.As(err, &answer) && !answer.Temporary() {
			return first, end, err
		}
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("topic %s partition %d has no leader: %w", topic, partition, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// BatchOverhead is what a record batch needs around one message: max.message.bytes bounds the batch.
const BatchOverhead = 64 << 10
