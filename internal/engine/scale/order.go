package scale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// ErrOrder means that an order cannot be carried out as it is.
var ErrOrder = errors.New("this cannot be scaled")

// most bounds the shards: each model task knows all of them, and each partition that is split writes to all.
const most = 4096

// Topics are those of a deployment.
type Topics struct {
	Config *config.Config
	Client *kafka.Client
}

// Order notes an order where none is open. One for as many shards as there are, or are to be, changes nothing.
func (b *Book) Order(ctx context.Context, t Topics, o Plan) error {
	plan, _ := b.Now()
	goal := max(plan.Of, plan.To)
	switch {
	case o.To == goal:
		return nil
	case plan.Open():
		return fmt.Errorf("%w: an order for %d is open, of %s by %s: wait until it has been carried out", ErrOrder,
			goal, plan.Since.Format(time.RFC3339), plan.By)
	case o.To < plan.Of:
		return fmt.Errorf("%w: there are %d shards, and they cannot become %d: they only become more", ErrOrder,
			plan.Of, o.To)
	case o.To > most:
		return fmt.Errorf("%w: %d shards, at most %d", ErrOrder, o.To, most)
	}
	if err := t.make(ctx, o.To); err != nil {
		return err
	}
	plan.To, plan.By, plan.Why, plan.Since = o.To, o.By, o.Why, time.Now().UTC().Truncate(time.Second)
	err := b.Save(ctx, plan)
	if errors.Is(err, pipeline.ErrFenced) {
		return fmt.Errorf("%w: another order came first", ErrOrder)
	}
	return err
}

// make makes the topics that so many shards will read. One that is there must be empty: nobody has read it.
func (t Topics) make(ctx context.Context, shards int) error {
	made, err := kafkaclient.CreateByID(ctx, t.Client, *t.Config, shards)
	if err != nil {
		return err
	}
	for _, topic := range made {
		if topic.Partitions != shards {
			return fmt.Errorf("%w: topic %s is there with %d partitions: delete it", ErrOrder, topic.Topic,
				topic.Partitions)
		}
		for p := range shards {
			first, end, err := kafkaclient.Bounds(ctx, t.Client, topic.Topic, p)
			if err != nil {
				return err
			}
			if end > first {
				return fmt.Errorf("%w: topic %s is there and has records that no shard has read: delete it", ErrOrder,
					topic.Topic)
			}
		}
	}
	return nil
}

// Widen gives the topics that producers write to by id as many partitions as there are shards. Those that are written
// to without a key may have any number.
func (t Topics) Widen(ctx context.Context, plan Plan, tell func(string)) error {
	own := (&Plan{}).Inputs(t.Config)
	for _, in := range slices.Sorted(maps.Keys(own)) {
		topic := own[in]
		n, err := kafkaio.Partitions(ctx, t.Client, topic)
		if err != nil {
			return err
		}
		if n >= plan.Of {
			continue
		}
		res, err := t.Client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(plan.Of)}}})
		if err == nil {
			err = res.Errors[topic]
		}
		if err != nil {
			return fmt.Errorf("there are %d shards; topic %s stays at %d partitions, which does no harm: %w", plan.Of,
				topic, n, err)
		}
		tell(fmt.Sprintf("topic %s has %d partitions, it had %d", topic, plan.Of, n))
	}
	return nil
}

// Recover finds the number of shards again where the plan is lost with the states: shards have read a topic of
// plumbline's own.
func (b *Book) Recover(ctx context.Context, t Topics) error {
	b.mu.Lock()
	ordered := b.number > 0
	b.mu.Unlock()
	if ordered {
		return nil
	}
	of, err := t.Found(ctx)
	if err != nil || of == 0 {
		return err
	}
	b.Log.Warn("the number of shards is known by the topic that they read: the state is lost", "shards", of)
	if err = b.Save(ctx, Plan{Of: of, Split: true}); errors.Is(err, pipeline.ErrFenced) {
		return nil
	}
	return err
}

// Found is the number of shards by the topics of plumbline's own that they read; 0 = they read none.
func (t Topics) Found(ctx context.Context) (of int, err error) {
	found, err := kafkaclient.FindByID(ctx, t.Client, t.Config)
	if err != nil {
		return 0, err
	}
	for _, topic := range found { // one that was made for an order that was never given has nothing
		written, err := t.written(ctx, topic.Topic, topic.Partitions)
		if err != nil {
			return 0, err
		}
		if written {
			return topic.Partitions, nil
		}
	}
	return 0, nil
}

// written says whether any partition of a topic has had a record. A process that was killed early has written to few.
func (t Topics) written(ctx context.Context, topic string, partitions int) (bool, error) {
	for p := range partitions {
		_, end, err := kafkaclient.Bounds(ctx, t.Client, topic, p)
		if err != nil || end > 0 {
			return end > 0, err
		}
	}
	return false, nil
}
