package reset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Relay is a topic that the repartition stage splits by id. A task of it has no state but the offset that its group has
// committed.
type Relay struct {
	Name       string // of its tasks, without the partition
	Input      pipeline.Input
	Topic      string
	Group      string
	Partitions int
}

// planRelay moves a partition's offset to the first record that there is, if the one that comes next is gone.
func (r *Reset) planRelay(ctx context.Context, c *Change, o Order) error {
	in, topic := c.relay.Input, c.relay.Topic
	at, err := kafkaio.Committed(ctx, r.Spec.Client, c.relay.Group, topic, c.partition)
	if err != nil {
		return err
	}
	to, skipped, err := r.within(ctx, c, in, at)
	if err != nil {
		return err
	}
	c.next = map[pipeline.Input]int64{in: to}
	switch {
	case r.Remade[topic]:
		c.What, c.Reason = Move, topic+" was deleted and made again" // shards tell of the loss
	case at < 0 || to == at:
		c.What, c.Reason = Keep, "the records that it would read next are there"
	default:
		c.What, c.Reason = Move, fmt.Sprintf("offset %d of %s is not in the log any more", at, topic)
		c.Loss = &record.Loss{Schema: 1, Task: c.Task, From: map[string]int64{topic: to}, By: o.By, Why: o.Why,
			At: record.Now()}
		c.skip(topic, skipped)
		c.Loss.Until, err = r.timeOf(ctx, c)
	}
	return err
}

// timeOf returns the timestamp of the record that a partition goes on with, or the present if it is still to come: the
// lost ones are older.
func (r *Reset) timeOf(ctx context.Context, c *Change) (record.Time, error) {
	next := c.next[c.relay.Input]
	_, hi, err := kafkaio.Bounds(ctx, r.Spec.Client, c.relay.Topic, c.partition)
	if err != nil || next >= hi {
		return record.Now(), err
	}
	log := kafkaio.NewLog(r.Spec, c.relay.Topic, c.partition, kafkaio.Range{Next: next, Until: hi})
	defer log.Close()
	for {
		rec, err := log.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return record.Now(), nil
		case err != nil:
			return record.Time{}, err
		case !rec.Idle:
			return record.At(rec.Time), nil
		}
	}
}

// applyRelays notes the losses with a shard, which tells every model, and then commits the offsets.
func (r *Reset) applyRelays(ctx context.Context, relays []*Change) error {
	if err := r.tellRelays(ctx, relays); err != nil {
		return err
	}
	commits := map[string]*kafka.OffsetCommitRequest{}
	for _, c := range relays {
		req := commits[c.relay.Group]
		if req == nil {
			req = &kafka.OffsetCommitRequest{GroupID: c.relay.Group, GenerationID: -1,
				Topics: map[string][]kafka.OffsetCommit{}}
			commits[c.relay.Group] = req
		}
		req.Topics[c.relay.Topic] = append(req.Topics[c.relay.Topic],
			kafka.OffsetCommit{Partition: c.partition, Offset: c.next[c.relay.Input]})
	}
	for _, group := range slices.Sorted(maps.Keys(commits)) {
		res, err := r.Spec.Client.OffsetCommit(ctx, commits[group])
		if err == nil {
			for _, ps := range res.Topics {
				for _, p := range ps {
					err = errors.Join(err, p.Error)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", group, err)
		}
	}
	return nil
}

// tellRelays adds the losses, as one, to the state of the first shard that has one.
func (r *Reset) tellRelays(ctx context.Context, relays []*Change) error {
	loss := lossOf(relays)
	if loss == nil {
		return nil
	}
	for p := range r.Shards {
		c := &Change{stage: "shards", partition: p}
		info, err := r.load(ctx, c)
		if err != nil {
			return err
		}
		if info == nil {
			continue
		}
		if at, err := record.ParseTime(info.Watermark); err == nil {
			loss.Since = at
		}
		if !loss.Until.After(loss.Since) { // event times are ahead of the records'
			loss.Until = record.Time{}
		}
		to := slot{r.Store, c.key(r.Config.Group), c.newest + 1}
		return to.amended(ctx, *c.stored, map[string]pipeline.Edit{
			"life": pipeline.EditState(func(l *pipeline.Epoch) { l.Add(loss) })})
	}
	return fmt.Errorf("%w: no shard has a checkpoint in which the loss can be noted: use --task all", ErrOrder)
}

// lossOf is the loss of several tasks; nil = nothing was lost. Its offsets are by topic/partition.
func lossOf(relays []*Change) *record.Loss {
	var out *record.Loss
	var tasks []string
	for _, c := range relays {
		if c.Loss == nil {
			continue
		}
		if out == nil {
			out = &record.Loss{Schema: 1, From: map[string]int64{}, By: c.Loss.By, Why: c.Loss.Why, At: c.Loss.At}
		}
		tasks = append(tasks, c.Task)
		if c.Loss.Until.After(out.Until) {
			out.Until = c.Loss.Until
		}
		at := Task(c.relay.Topic, c.partition)
		out.From[at] = c.Loss.From[c.relay.Topic]
		if n := c.Loss.Skipped[c.relay.Topic]; n > 0 {
			if out.Skipped == nil {
				out.Skipped = map[string]int64{}
			}
			out.Skipped[at] = n
		}
	}
	if out != nil {
		out.Task = strings.Join(tasks, ", ")
	}
	return out
}
