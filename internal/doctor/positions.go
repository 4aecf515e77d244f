package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// positions looks whether the logs still have what the consumer groups have not read: retention does not wait for
// processes that are down.
func (d *doctor) positions(ctx context.Context) {
	reads, unread, asked := d.reads(), int64(0), 0
	var gone []string
	var failed error
	for _, group := range slices.Sorted(maps.Keys(reads)) {
		for _, topic := range reads[group] {
			n, lost, err := d.unread(ctx, group, topic)
			if asked += n; lost > 0 {
				unread, gone = unread+lost, append(gone, topic)
			}
			failed = cmp.Or(failed, err)
		}
	}
	switch {
	case gone != nil:
		d.say("positions", Warn, "if a task fails for it, plumbline state reset says what is lost, and goes on after "+
			"it; raise retention.ms and retention.bytes of the topics, so that they keep what is not read",
			"%d offsets left the logs of %s before their group committed them", unread, list(gone))
	case failed != nil:
		d.say("positions", Unknown, "", "%v", failed)
	case asked > 0:
		d.say("positions", OK, "", "the logs have all that has not been read")
	}
}

// unread returns of how many partitions of a topic a group has committed an offset, and how many offsets from there on
// are not in the log any more.
func (d *doctor) unread(ctx context.Context, group, topic string) (partitions int, lost int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ask := kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{}}
	for p := range d.topics[topic].Partitions {
		ask.Topics[topic] = append(ask.Topics[topic], p)
	}
	if len(ask.Topics) == 0 {
		return 0, 0, nil
	}
	res, err := d.client.OffsetFetch(ctx, &ask)
	if err == nil {
		err = res.Error
	}
	switch {
	case errors.Is(err, kafka.GroupIdNotFound):
		return 0, 0, nil
	case err != nil:
		return 0, 0, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	for _, p := range res.Topics[topic] {
		if p.Error != nil || p.CommittedOffset < 0 {
			err = cmp.Or(err, p.Error)
			continue
		}
		first, _, e := kafkaio.Bounds(ctx, d.client, topic, p.Partition)
		partitions, err = partitions+1, cmp.Or(err, e)
		lost += max(0, first-p.CommittedOffset)
	}
	return partitions, lost, err
}
