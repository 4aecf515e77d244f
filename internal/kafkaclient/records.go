package kafkaclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ProduceBatch writes one record batch as it is, and returns the offset of its first record.
func ProduceBatch(ctx context.Context, c *kafka.Client, topic string, partition int, batch []byte) (int64, error) {
	var size [4]byte                                        // kafka-go leaves it to the set
	binary.BigEndian.PutUint32(size[:], uint32(len(batch))) //nolint:gosec // a message
	set := io.MultiReader(bytes.NewReader(size[:]), bytes.NewReader(batch))
	res, err := c.RawProduce(ctx, &kafka.RawProduceRequest{Topic: topic, Partition: partition,
		RequiredAcks: kafka.RequireAll, RawRecords: protocol.RawRecordSet{Reader: set}})
	if err == nil && res.Error != nil {
		err = res.Error
		for _, why := range res.RecordErrors {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("topic %s partition %d: %w", topic, partition, err)
	}
	return res.BaseOffset, nil
}

// DeleteRecords removes the records of a partition below an offset.
func DeleteRecords(ctx context.Context, c *kafka.Client, topic string, partition int, below int64) error {
	m, err := c.Transport.RoundTrip(ctx, c.Addr, &deleteRecords{topic, partition, below})
	if err == nil {
		if code := m.(*deletedRecords).code; code != 0 {
			err = kafka.Error(code)
		}
	}
	if err != nil {
		return fmt.Errorf("delete the records of topic %s partition %d below %d: %w", topic, partition, below, err)
	}
	return nil
}

// deleteRecords is a request that kafka-go does not know: it writes itself.
type deleteRecords struct {
	topic     string
	partition int
	below     int64
}

type deletedRecords struct{ code int16 }

// ApiKey implements protocol.Message.
func (*deleteRecords) ApiKey() protocol.ApiKey { return protocol.Metadata }

// ApiKey implements protocol.Message.
func (*deletedRecords) ApiKey() protocol.ApiKey { return protocol.Metadata }

// Required implements protocol.RawExchanger.
func (*deleteRecords) Required(map[protocol.ApiKey]int16) bool { return true }

// Broker implements protocol.BrokerMessage: the leader.
func (r *deleteRecords) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	p, ok := cluster.Topics[r.topic].Partitions[int32(r.partition)] //nolint:gosec // a partition
	leader, known := cluster.Brokers[p.Leader]
	if !ok || !known {
		return protocol.Broker{}, kafka.LeaderNotAvailable
	}
	return leader, nil
}

// RawExchange implements protocol.RawExchanger, in version 1 of the request, which has no tags.
func (r *deleteRecords) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	const version, correlation, patience, most = 1, 0x64656c, 30 * time.Second, 1 << 20
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.SetVersion(version)
	req.TimeoutMillis = int32(patience.Milliseconds())
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: r.topic,
		Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{
			Partition: int32(r.partition), Offset: r.below}}}} //nolint:gosec // a partition
	b := binary.BigEndian.AppendUint16(make([]byte, 4, 64), uint16(req.Key())) //nolint:gosec // positive
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint32(b, correlation)
	b = req.AppendTo(append(b, 0xff, 0xff))         // no client id
	binary.BigEndian.PutUint32(b, uint32(len(b)-4)) //nolint:gosec // short
	if _, err := rw.Write(b); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 4 || n > most || binary.BigEndian.Uint32(head[4:]) != correlation {
		return nil, fmt.Errorf("an answer of %d bytes, to request %x", n, head[4:])
	}
	body := make([]byte, n-4)
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, err
	}
	res := kmsg.NewPtrDeleteRecordsResponse()
	res.SetVersion(version)
	if err := res.ReadFrom(body); err != nil {
		return nil, err
	}
	if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return nil, errors.New("an answer without the partition")
	}
	return &deletedRecords{res.Topics[0].Partitions[0].ErrorCode}, nil
}
