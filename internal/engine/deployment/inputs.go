package deployment

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// SplitterOf names the stage that splits a topic.
func SplitterOf(s scale.Source) string {
	if s.As != nil {
		return "input-" + s.Topic
	}
	return "repartition-" + s.Input.String()
}

// Inputs has the topic ids after which the groups of inputs are named, for a plan.
type Inputs struct {
	Confirmed Confirmer // that the topics are those of the ids
	plan      scale.Plan
	of        map[string]kafkaio.TopicID
	absent    map[string]bool // not read until they are there, which is said as a failing task
	*Deployment
}

// ErrMadeAgain ends the groups of all inputs; the next ones get new names.
var ErrMadeAgain = errors.New("was deleted and made again: it is read from its start, and what nobody had read of " +
	"the one before is gone")

// AskInputs asks the brokers for the topic ids.
func (d *Deployment) AskInputs(ctx context.Context, plan scale.Plan) (*Inputs, error) {
	in := &Inputs{Deployment: d, plan: plan, of: map[string]kafkaio.TopicID{}, absent: map[string]bool{}}
	sources, _ := plan.Sources(d.Config)
	for _, s := range sources {
		if s.As == nil {
			continue
		}
		ids, err := kafkaio.TopicIDs(ctx, d.Client, s.Topic)
		switch {
		case errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.TopicAuthorizationFailed):
			in.of[s.Topic], in.absent[s.Topic] = kafkaio.TopicID{}, true
		case err != nil:
			return nil, err
		default:
			in.of[s.Topic] = ids[0]
		}
	}
	in.Confirmed.ask = in.unchanged
	return in, nil
}

// Watch asks repeatedly until ctx is done, or until a topic was made again.
func (in *Inputs) Watch(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := in.Confirmed.Now(ctx); err != nil {
			return err
		}
	}
}

// Name returns the name under which shards know the topic of an input.
func (in *Inputs) Name(topic string) string { return nameWith(topic, in.of[topic]) }

// Absent reports whether a topic is not there, or may not be read.
func (in *Inputs) Absent(topic string) bool { return in.absent[topic] }

// unchanged returns an error if a topic was made again. If the brokers cannot tell, or the topic does not exist, it
// assumes no change this time.
func (in *Inputs) unchanged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, IDPatience)
	defer cancel()
	topics := slices.Sorted(maps.Keys(in.of))
	ids, err := kafkaio.KnownTopicIDs(ctx, in.Client, topics...)
	if err != nil {
		in.Log.Debug("ids of topics", "err", err)
	}
	for i, topic := range topics {
		switch was := in.of[topic]; {
		case was == ids[i] || was == kafkaio.TopicID{} && !in.absent[topic]:
		case ids[i] == kafkaio.TopicID{}:
			in.Confirmed.Doubt()
		default:
			return fmt.Errorf("topic %s %w", topic, ErrMadeAgain)
		}
	}
	return nil
}

// Group names the consumer group of a topic that is split.
func (in *Inputs) Group(s scale.Source) string {
	name := SplitterOf(s)
	if s.As != nil {
		name = "input-" + in.Name(s.Topic)
	}
	return in.Config.Group + "-" + name + in.plan.Suffix()
}

// SourceName returns the name under which shards know an unkeyed topic: its name and id.
func SourceName(ctx context.Context, client *kafka.Client, topic string) (string, error) {
	ids, err := kafkaio.TopicIDs(ctx, client, topic)
	if err != nil {
		return topic, err
	}
	return nameWith(topic, ids[0]), nil
}

func nameWith(topic string, id kafkaio.TopicID) string {
	if id == (kafkaio.TopicID{}) {
		return topic
	}
	return topic + "@" + hex.EncodeToString(id[:])
}

// relays are the topics that are split, for package reset.
func (d *Deployment) relays(ctx context.Context) ([]reset.Relay, error) {
	made, err := d.AskInputs(ctx, d.Plan())
	if err != nil {
		return nil, err
	}
	var out []reset.Relay
	sources, _ := made.plan.Sources(d.Config)
	for _, s := range sources {
		if made.Absent(s.Topic) {
			continue
		}
		n, err := kafkaio.Partitions(ctx, d.Client, s.Topic)
		if err != nil {
			return nil, err
		}
		out = append(out, reset.Relay{Name: SplitterOf(s), Input: s.Input, Topic: s.Topic,
			Group: made.Group(s), Partitions: n})
	}
	return out, nil
}
