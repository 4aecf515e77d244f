package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
)

// Settings of topics by which records stay or go.
const (
	cleanup        = "cleanup.policy"
	retentionTime  = "retention.ms"
	retentionBytes = "retention.bytes"
	timestampType  = "message.timestamp.type"
	forever        = "-1"
)

// Unfit is a topic that exists with settings by which records that are needed get lost, or are refused.
type Unfit struct {
	Topic string
	Has   string // the setting as it is
	Wants string // the settings that mend it, as kafka-configs.sh takes them
	Harm  string
	// Slow: all works until the retention is over.
	Slow bool
}

func (u Unfit) String() string { return fmt.Sprintf("topic %s has %s: %s", u.Topic, u.Has, u.Harm) }

// Mend is the command that mends it.
func (u Unfit) Mend(cfg config.Config) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s "+
		"--add-config %s", strings.Join(cfg.Kafka.Brokers, ","), u.Topic, u.Wants)
}

// UnfitTopics asks the brokers for the settings of the topics that cfg uses and judges them. Topics that are not there
// are passed over. The error names those whose settings the brokers do not show to this user; all others are judged.
func UnfitTopics(ctx context.Context, client *kafka.Client, cfg config.Config) ([]Unfit, error) {
	idle := unused(&cfg)
	wanted := slices.DeleteFunc(withByID(ctx, client, cfg), func(t kafka.TopicConfig) bool { return idle[t.Topic] })
	var names []string
	for _, t := range wanted {
		names = append(names, t.Topic)
	}
	has, err := settings(ctx, client, names, cleanup, retentionTime, retentionBytes, timestampType)
	var out []Unfit
	for _, t := range wanted {
		if h, ok := has[t.Topic]; ok {
			out = append(out, judge(t, h, t.Topic == cfg.Topics.Decisions)...)
			out = append(out, judgeTime(t, h)...)
		}
	}
	return out, err
}

// WarnOfTopics logs which topics of cfg will lose or refuse what plumbline needs, and returns those that are too small.
// If a broker does not show this user its configuration, that is all that happens.
func WarnOfTopics(ctx context.Context, client *kafka.Client, cfg config.Config, log *slog.Logger) []SmallTopic {
	small, _ := SmallTopics(ctx, client, cfg) // the same error as of all topics
	for _, s := range small {
		log.Warn(s.String())
	}
	unfit, err := UnfitTopics(ctx, client, cfg)
	if err != nil {
		log.Warn("whether topics keep what they must, and take messages of kafka.message_max_bytes, is not known",
			"err", err)
	}
	for _, u := range unfit {
		log.Warn(u.String(), "mend", u.Mend(cfg))
	}
	return small
}

// judge compares what a topic would be made with and what it has.
func judge(wants kafka.TopicConfig, has map[string]string, history bool) []Unfit {
	policy, want := has[cleanup], wants.ConfigEntries[0].ConfigValue
	compacts, deletes := includes(policy, "compact"), includes(policy, "delete")
	ends := deletes && (has[retentionTime] != forever || has[retentionBytes] != forever)
	u := Unfit{Topic: wants.Topic, Has: cleanup + "=" + policy, Wants: cleanup + "=" + want}
	switch {
	case want == "delete" && compacts:
		u.Harm = "of records with one key it keeps the newest only, and the brokers refuse those without a key"
		if history {
			u.Wants += "," + retentionTime + "=" + forever
		}
	case want == "compact" && ends:
		u.Harm = fmt.Sprintf("it deletes the newest record of a key too, after %s=%s, %s=%s", retentionTime,
			has[retentionTime], retentionBytes, has[retentionBytes])
	case history && ends:
		u.Has = fmt.Sprintf("%s=%s, %s=%s", retentionTime, has[retentionTime], retentionBytes, has[retentionBytes])
		u.Wants = fmt.Sprintf("%s=%s,%s=%s", retentionTime, forever, retentionBytes, forever)
		u.Harm, u.Slow = "a history that is made again lacks what is older", true
	default:
		return nil
	}
	return []Unfit{u}
}

// judgeTime judges whose clock a topic's records have.
func judgeTime(wants kafka.TopicConfig, has map[string]string) []Unfit {
	const sender, broker = timestampType + "=CreateTime", timestampType + "=LogAppendTime"
	wanted := slices.ContainsFunc(wants.ConfigEntries, func(e kafka.ConfigEntry) bool {
		return e.ConfigName+"="+e.ConfigValue == broker
	})
	if !wanted || timestampType+"="+has[timestampType] != sender {
		return nil
	}
	return []Unfit{{Topic: wants.Topic, Has: sender, Wants: broker, Slow: true,
		Harm: "its records have their writer's time, or that of events: brokers refuse those an hour ahead of their " +
			"clock, and delete those past retention at once"}}
}

func includes(policies, policy string) bool {
	for p := range strings.SplitSeq(policies, ",") {
		if strings.TrimSpace(p) == policy {
			return true
		}
	}
	return false
}

// unused has the topics that cfg names and its processes neither read nor write.
func unused(cfg *config.Config) map[string]bool {
	t, heads := &cfg.Topics, cfg.Trigger.Enabled || cfg.Heads.Shadow
	return map[string]bool{t.Calibrated: !cfg.Calibrated.Enabled, t.Finetune: !heads, t.Heads: !heads}
}

// RefuseWrites are those of the topics whose brokers refuse what must be written to all replicas in sync, since these
// are fewer than min.insync.replicas: one is down, or there never were enough.
func RefuseWrites(ctx context.Context, client *kafka.Client, topics map[string]Topic) ([]string, error) {
	const least = "min.insync.replicas"
	var out []string
	has, err := settings(ctx, client, slices.Collect(maps.Keys(topics)), least)
	for name, of := range has {
		if n, err := strconv.Atoi(of[least]); err == nil && topics[name].InSync < n {
			out = append(out, fmt.Sprintf("%s (%d in sync, %s=%d)", name, topics[name].InSync, least, n))
		}
	}
	slices.Sort(out)
	return out, err
}

// settings asks the brokers for the named settings of topics. Topics that are not there, and those of the error, which
// this user may not look at, are missing.
func settings(ctx context.Context, client *kafka.Client, topics []string,
	names ...string) (map[string]map[string]string, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	req := &kafka.DescribeConfigsRequest{}
	for _, t := range topics {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: t, ConfigNames: names})
	}
	resp, err := client.DescribeConfigs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("settings of the topics: %w", err)
	}
	out := map[string]map[string]string{}
	var refused []string
	for _, r := range resp.Resources {
		switch {
		case errors.Is(r.Error, kafka.UnknownTopicOrPartition):
			continue
		case r.Error != nil: // most likely the same of all
			refused, err = append(refused, r.ResourceName), r.Error
			continue
		}
		of := map[string]string{}
		for _, e := range r.ConfigEntries {
			of[e.ConfigName] = e.ConfigValue
		}
		out[r.ResourceName] = of
	}
	if refused != nil {
		err = fmt.Errorf("settings of topics %s: %w", strings.Join(refused, ", "), err)
	}
	return out, err
}
