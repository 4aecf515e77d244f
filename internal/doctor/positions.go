package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// positions looks whether the logs still have what the consumer groups have not read: retention does not wait for
// processes that are down.
func (d *doctor) positions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reads, unread, begun := d.reads(), int64(0), false
	var gone []string
	for _, group := range slices.Sorted(maps.Keys(reads)) {
		ask := kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{}}
		for _, topic := range reads[group] {
			for p := range d.topics[topic].Partitions {
				ask.Topics[topic] = append(ask.Topics[topic], p)
			}
		}
		res, err := d.client.OffsetFetch(ctx, &ask)
		if err != nil || res.Error != nil {
			continue // permissions say so
		}
		for _, topic := range slices.Sorted(maps.Keys(res.Topics)) {
			for _, p := range res.Topics[topic] {
				if p.Error != nil || p.CommittedOffset < 0 {
					continue
				}
				begun = true
				first, _, err := kafkaio.Bounds(ctx, d.client, topic, p.Partition)
				if err == nil && first > p.CommittedOffset {
					unread += first - p.CommittedOffset
					gone = append(gone, topic)
				}
			}
		}
	}
	switch {
	case gone != nil:
		d.say("positions", Bad, "plumbline state reset says what is lost, and goes on after it; raise retention.ms "+
			"and retention.bytes of the topics, so that they keep what is not read",
			"%d offsets left the logs of %s before they were read", unread, strings.Join(slices.Compact(gone), ", "))
	case begun:
		d.say("positions", OK, "", "the logs have all that has not been read")
	}
}
