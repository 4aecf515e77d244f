package pipeline

import (
	"encoding/json"
	"fmt"
)

// Message is one output record.
type Message struct {
	Stream    Stream
	Partition int32 // -1 = by key, as Kafka's default partitioner does
	Key       []byte
	Value     []byte
	Headers   []Header
	Time      Time
	// Record is the value that Value encodes, a pointer to a type of package record, for readers in this process. It is
	// read-only, and nil for messages without such a value.
	Record any
}

// Size is about how many bytes of memory and of the log a message takes.
func (m *Message) Size() int {
	const fixed, header = 256, 48
	n := fixed + len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += header + len(m.Headers[i].Key) + len(m.Headers[i].Value)
	}
	return n
}

// NewMessage is the output of a record, which is encoded here and nowhere else. Neither the record nor anything that it
// points to may change afterwards.
func NewMessage(s Stream, key string, at Time, rec any) (Message, error) {
	value, err := json.Marshal(rec)
	if err != nil {
		return Message{}, fmt.Errorf("%T of %s: %w", rec, key, err)
	}
	return Message{Stream: s, Partition: -1, Key: []byte(key), Value: value, Time: at, Record: rec}, nil
}
