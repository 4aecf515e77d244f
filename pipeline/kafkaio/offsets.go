package kafkaio

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// Committed returns the offset that a group has committed for a partition, -1 where it has none. It tries again until
// ctx is done: a coordinator that moves answers with errors for a while.
func Committed(ctx context.Context, c *kafka.Client, group, topic string, partition int) (int64, error) {
	for pause := retries(); ; pause.Wait(ctx) {
		offset, err := committedOnce(ctx, c, group, topic, partition)
		if err == nil {
			return offset, nil
		}
		if errors.Is(err, kafka.GroupIdNotFound) {
			return -1, nil
		}
		if ctx.Err() != nil || permanent(err) || errors.Is(err, kafka.GroupAuthorizationFailed) {
			return 0, fmt.Errorf("offset of group %s in %s partition %d: %w", group, topic, partition, err)
		}
	}
}

func committedOnce(ctx context.Context, c *kafka.Client, group, topic string, partition int) (int64, error) {
	res, err := c.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group,
		Topics: map[string][]int{topic: {partition}}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return 0, err
	}
	for _, p := range res.Topics[topic] {
		if p.Partition == partition {
			return p.CommittedOffset, p.Error
		}
	}
	return 0, fmt.Errorf("the answer has no such partition")
}
