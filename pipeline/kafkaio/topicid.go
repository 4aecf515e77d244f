package kafkaio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicID identifies a topic from its creation to its deletion. A topic that is deleted and made again has the same
// name and another id. The zero id is that of a broker without ids, before Kafka 2.8.
type TopicID [16]byte

// idVersion is the first version of the metadata request whose answer has ids; kafka-go does not know it.
const idVersion = 10

// TopicIDs asks for the ids of topics, in their order; all zero where the brokers have none.
func TopicIDs(ctx context.Context, c *kafka.Client, topics ...string) ([]TopicID, error) {
	ids := make([]TopicID, len(topics))
	by, err := askTopicIDs(ctx, c, topics)
	if by == nil || err != nil {
		return ids, err
	}
	for i, name := range topics {
		t, ok := by[name]
		if !ok {
			return nil, fmt.Errorf("topic %s: %w", name, kafka.UnknownTopicOrPartition)
		}
		if t.ErrorCode != 0 {
			return nil, fmt.Errorf("topic %s: %w", name, kafka.Error(t.ErrorCode))
		}
		ids[i] = t.TopicID
	}
	return ids, nil
}

// KnownTopicIDs is like TopicIDs, but gives a zero id for topics that do not exist or that this user may not see.
func KnownTopicIDs(ctx context.Context, c *kafka.Client, topics ...string) ([]TopicID, error) {
	ids := make([]TopicID, len(topics))
	by, err := askTopicIDs(ctx, c, topics)
	for i, name := range topics {
		if t := by[name]; t != nil && t.ErrorCode == 0 {
			ids[i] = t.TopicID
		}
	}
	return ids, err
}

// askTopicIDs asks for topics by name; nil where the brokers have no ids.
func askTopicIDs(ctx context.Context, c *kafka.Client, topics []string) (map[string]*kmsg.MetadataResponseTopic,
	error) {
	versions, err := c.ApiVersions(ctx, &kafka.ApiVersionsRequest{})
	if err == nil {
		err = versions.Error
	}
	if err != nil {
		return nil, fmt.Errorf("versions of the brokers: %w", err)
	}
	if newestOf(versions, protocol.Metadata) < idVersion {
		return nil, nil
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	transport := c.Transport
	if transport == nil {
		transport = kafka.DefaultTransport
	}
	m, err := transport.RoundTrip(ctx, c.Addr, &idsRequest{topics})
	if err != nil {
		return nil, fmt.Errorf("ids of topics: %w", err)
	}
	by, ok := m.(*idsResponse)
	if !ok {
		return nil, fmt.Errorf("ids of topics: answer of type %T", m)
	}
	return by.topics, nil
}

// newestOf returns the newest version of a request that a broker knows.
func newestOf(v *kafka.ApiVersionsResponse, key protocol.ApiKey) int {
	for _, k := range v.ApiKeys {
		if k.ApiKey == int(key) {
			return k.MaxVersion
		}
	}
	return -1
}

// idsRequest is a metadata request of a version that kafka-go does not know, so it encodes itself.
type idsRequest struct{ topics []string }

// ApiKey implements protocol.Message.
func (*idsRequest) ApiKey() protocol.ApiKey { return protocol.Metadata }

// Required implements protocol.RawExchanger.
func (*idsRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// idsResponse has the topics by name.
type idsResponse struct {
	topics map[string]*kmsg.MetadataResponseTopic
}

// ApiKey implements protocol.Message.
func (*idsResponse) ApiKey() protocol.ApiKey { return protocol.Metadata }

// maxMetadata bounds an answer: some topics of some thousand partitions.
const maxMetadata = 64 << 20

// RawExchange implements protocol.RawExchanger.
func (r *idsRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	const correlation = 0x69647321
	if _, err := rw.Write(r.encode(correlation)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(rw, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 5 || n > maxMetadata {
		return nil, fmt.Errorf("metadata of %d bytes, allowed are 5 to %d", n, maxMetadata)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, err
	}
	if got := binary.BigEndian.Uint32(body); got != correlation {
		return nil, fmt.Errorf("answer to request %d, asked was %d", got, correlation)
	}
	if body[4] != 0 {
		return nil, errors.New("metadata with tagged fields in its header")
	}
	res := kmsg.NewPtrMetadataResponse()
	res.SetVersion(idVersion)
	if err := res.ReadFrom(body[5:]); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	out := &idsResponse{map[string]*kmsg.MetadataResponseTopic{}}
	for i := range res.Topics {
		if name := res.Topics[i].Topic; name != nil {
			out.topics[*name] = &res.Topics[i]
		}
	}
	return out, nil
}

// encode returns the request with its length and its header, of version 2.
func (r *idsRequest) encode(correlation uint32) []byte {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(idVersion)
	for _, name := range r.topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
	}
	b := make([]byte, 4, 256)
	b = binary.BigEndian.AppendUint16(b, uint16(protocol.Metadata))
	b = binary.BigEndian.AppendUint16(b, idVersion)
	b = binary.BigEndian.AppendUint32(b, correlation)
	b = append(b, 0xff, 0xff, 0) // no client id, no tagged fields
	b = req.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4)) //nolint:gosec // some hundred bytes
	return b
}
