package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/internal/embedded"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Move is an order to go to a Kafka.
type Move struct {
	Dir string
	// Brokers, or the configuration that the deployment has afterwards.
	Brokers []string
	Target  *config.Config
	Log     *slog.Logger
	Tell    func(format string, args ...any)
}

// movingFile names the brokers that a directory's topics are being copied to: only then they may hold some of them.
const movingFile = "moving"

// Migrate copies all topics to the brokers, offset by offset where offsets mean something, and then lets the state be
// that of the topics there. It may be stopped and run again.
func Migrate(ctx context.Context, m Move) error {
	dir, err := filepath.Abs(m.Dir)
	if err != nil {
		return err
	}
	cfg, found, err := configOf(dir)
	if !found && err == nil {
		err = fmt.Errorf("%w: %s: has no %s of plumbline serve --embedded", ErrUsage, dir, ConfigFile)
	}
	if err != nil {
		return err
	}
	if to, err := moved(dir); err != nil || to != "" {
		return errors.Join(err, fmt.Errorf("%w: the topics of %s were moved to %s already", ErrUsage, dir, to))
	}
	target, err := m.target(&cfg)
	if err != nil {
		return err
	}
	broker, err := startBroker(dir, &cfg, m.Log)
	if err != nil {
		return err
	}
	defer broker.Close()
	topics, err := broker.Topics()
	if err != nil {
		return err
	}
	to := &mover{Move: m, cfg: target, exact: readByOffset(&target), name: strings.Join(target.Kafka.Brokers, ",")}
	if to.client, _, err = kafkaclient.New(target.Kafka); err != nil {
		return err
	}
	if err := to.begin(ctx, dir, topics); err != nil {
		return err
	}
	for _, t := range topics {
		if err := to.topic(ctx, t); err != nil {
			return err
		}
	}
	if err := to.groups(ctx, &cfg, topics); err != nil {
		return err
	}
	if err := deployment.New(&target, m.Log).TopicsMoved(ctx); err != nil {
		return err
	}
	return to.end(dir, &cfg)
}

// target is the configuration afterwards.
func (m *Move) target(cfg *config.Config) (config.Config, error) {
	if m.Target == nil {
		out := *cfg
		out.Kafka = config.Default().Kafka
		out.Kafka.Brokers, out.Kafka.Partitions, out.Kafka.MessageMax = m.Brokers, cfg.Kafka.Partitions,
			cfg.Kafka.MessageMax
		return out, nil
	}
	a, b := cfg, m.Target
	for key, differs := range map[string]bool{
		"topics": a.Topics != b.Topics, "group": a.Group != b.Group,
		"checkpoints.store": a.Checkpoints.Store != b.Checkpoints.Store,
		"checkpoints.dir":   a.Checkpoints.Dir != b.Checkpoints.Dir,
	} {
		if differs {
			return *b, fmt.Errorf("%w: %s: must be as in %s of the directory, where the state is", ErrUsage, key,
				ConfigFile)
		}
	}
	return *b, nil
}

// readByOffset are the topics whose offsets are in checkpoints.
func readByOffset(c *config.Config) map[string]bool {
	t := &c.Topics
	out := map[string]bool{t.Logits: true, t.Labels: true, t.Panes: true}
	for _, topic := range c.InputTopics() {
		out[topic] = true
	}
	return out
}

// mover copies topics.
type mover struct {
	Move
	cfg    config.Config
	client *kafka.Client
	exact  map[string]bool
	name   string
}

// begin makes the topics. Those that are there must be empty, but for what an earlier try has copied.
func (m *mover) begin(ctx context.Context, dir string, topics []embedded.Topic) error {
	marker := filepath.Join(dir, movingFile)
	before, err := os.ReadFile(marker)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	again := strings.TrimSpace(string(before)) == m.name
	req := &kafka.CreateTopicsRequest{}
	for _, t := range topics {
		c := kafka.TopicConfig{Topic: t.Name, NumPartitions: len(t.Logs), ReplicationFactor: m.cfg.Kafka.Replication}
		for _, key := range slices.Sorted(maps.Keys(t.Configs)) {
			c.ConfigEntries = append(c.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: t.Configs[key]})
		}
		req.Topics = append(req.Topics, c)
	}
	res, err := m.client.CreateTopics(ctx, req)
	if err != nil {
		return kafkaclient.Explain(ctx, m.cfg.Kafka, err)
	}
	for _, t := range topics {
		err := res.Errors[t.Name]
		if err == nil || again && errors.Is(err, kafka.TopicAlreadyExists) {
			continue
		}
		if errors.Is(err, kafka.TopicAlreadyExists) {
			if err = m.empty(ctx, &t); err == nil {
				continue
			}
		}
		return fmt.Errorf("topic %s: %w", t.Name, err)
	}
	if err := kafkaclient.WaitForLeaders(ctx, m.client, req.Topics); err != nil {
		return err
	}
	return os.WriteFile(marker, []byte(m.name+"\n"), 0o600)
}

// empty returns an error where a topic that was there has records or other partitions.
func (m *mover) empty(ctx context.Context, t *embedded.Topic) error {
	n, err := kafkaclient.Partitions(ctx, m.client, t.Name)
	if err == nil && n != len(t.Logs) {
		err = fmt.Errorf("is there with %d partitions: must have %d, or not be there", n, len(t.Logs))
	}
	for p := 0; err == nil && p < n; p++ {
		var end int64
		if _, end, err = kafkaio.Bounds(ctx, m.client, t.Name, p); err == nil && end > 0 {
			err = fmt.Errorf("is there, and partition %d has had %d records: must be a new one", p, end)
		}
	}
	return err
}

// groups copies the offsets that consumer groups have committed.
func (m *mover) groups(ctx context.Context, cfg *config.Config, topics []embedded.Topic) error {
	from, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	list, err := from.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return fmt.Errorf("consumer groups: %w", err)
	}
	all := map[string][]int{}
	for _, t := range topics {
		for p := range t.Logs {
			all[t.Name] = append(all[t.Name], p)
		}
	}
	for _, g := range list.Groups {
		had, err := from.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: g.GroupID, Topics: all})
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", g.GroupID, err)
		}
		if err := m.commit(ctx, g.GroupID, had); err != nil {
			return fmt.Errorf("offsets of group %s: %w", g.GroupID, err)
		}
	}
	return nil
}

func (m *mover) commit(ctx context.Context, group string, had *kafka.OffsetFetchResponse) error {
	req := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{}}
	for name, ps := range had.Topics {
		for _, p := range ps {
			if p.CommittedOffset >= 0 && m.exact[name] {
				req.Topics[name] = append(req.Topics[name], kafka.OffsetCommit{Partition: p.Partition,
					Offset: p.CommittedOffset, Metadata: p.Metadata})
			}
		}
	}
	for until := time.Now().Add(patience); len(req.Topics) > 0; {
		res, err := m.client.OffsetCommit(ctx, req)
		if err == nil {
			err = errorsOf(res)
		}
		var refused kafka.Error
		if err == nil || time.Now().After(until) || ctx.Err() != nil || errors.As(err, &refused) &&
			!refused.Temporary() {
			return err
		}
		time.Sleep(time.Second) // a group that is new has no coordinator yet
	}
	return nil
}

// errorsOf is the first error of an answer.
func errorsOf(res *kafka.OffsetCommitResponse) error {
	for _, ps := range res.Topics {
		for _, p := range ps {
			if p.Error != nil {
				return p.Error
			}
		}
	}
	return nil
}

// end lets the directory's configuration lead to the brokers, and no process serve it embedded again.
func (m *mover) end(dir string, cfg *config.Config) error {
	file := filepath.Join(dir, ConfigFile)
	if m.Target == nil {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		quoted := make([]string, len(m.Brokers))
		for i, b := range m.Brokers {
			quoted[i] = strconv.Quote(b)
		}
		old := strconv.Quote(cfg.Kafka.Brokers[0])
		if strings.Count(string(text), old) != 1 {
			return fmt.Errorf("%s: kafka.brokers is not written as %s, once: set it to [%s] yourself; all else is done",
				file,
				old, strings.Join(quoted, ", "))
		}
		now := strings.Replace(string(text), old, strings.Join(quoted, ", "), 1)
		if err := durable.WriteFile(file, []byte(now)); err != nil {
			return err
		}
	}
	return durable.WriteFile(filepath.Join(dir, movedFile), []byte(m.name+"\n"))
}
