package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// refusing is a broker that refuses whole requests as Kafka does, for one record without a key, as in a compacted
// topic, or for whatever has a time.
type refusing struct {
	kafka.RoundTripper
	code kafka.Error
}

func (f *refusing) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	p, ok := req.(*produce.Request)
	if !ok {
		return f.RoundTripper.RoundTrip(ctx, addr, req)
	}
	part := &p.Topics[0].Partitions[0]
	var rs []protocol.Record
	refused := f.code != kafka.InvalidRecord
	for {
		r, err := part.RecordSet.Records.ReadRecord()
		if err != nil {
			break
		}
		refused = refused || r.Key == nil
		rs = append(rs, *r)
	}
	if refused {
		return &produce.Response{Topics: []produce.ResponseTopic{{Topic: p.Topics[0].Topic,
			Partitions: []produce.ResponsePartition{{ErrorCode: int16(f.code)}}}}}, nil
	}
	part.RecordSet.Records = protocol.NewRecordReader(rs...)
	return f.RoundTripper.RoundTrip(ctx, addr, req)
}

// TestSinkKeepsWhatATopicRefuses: an output that a topic refuses for its settings, or for a clock, is not lost. The
// error says what mends it, nothing of the request is written, so that it does not come twice when somebody has done
// so, and only dead letters are given up.
func TestSinkKeepsWhatATopicRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   kafka.Error
		reason string
		mend   string
	}{
		{kafka.InvalidRecord, "invalid", "cleanup.policy is delete"},
		{kafka.InvalidTimestamp, "timestamp", "message.timestamp.type to LogAppendTime"},
		{kafka.MessageSizeTooLarge, "too_large", "max.message.bytes must be above kafka.message_max_bytes"},
	} {
		brokers := kafkatest.Start(t)
		kafkatest.CreateTopics(t, brokers, 1, "panes", "letters")
		client := newClient(t, brokers)
		topics := map[pipeline.Stream]string{pipeline.StreamPanes: "panes", pipeline.StreamDeadLetter: "letters"}
		s, err := NewSink(context.Background(), client, topics, 1<<20, quiet)
		if err != nil {
			t.Fatal(err)
		}
		client.Transport = &refusing{client.Transport, c.code}
		var panes, letters []pipeline.Message
		for i := range 9 {
			m := pipeline.Message{Stream: pipeline.StreamPanes, Value: fmt.Append(nil, i), Time: 1}
			if i != 5 { // a punctuation
				m.Key = []byte("m")
			}
			panes = append(panes, m)
			m.Stream = pipeline.StreamDeadLetter
			letters = append(letters, m)
		}
		err = s.Write(t.Context(), panes)
		var refused *pipeline.RefusedError
		if !errors.Is(err, c.code) || errors.As(err, &refused) || !strings.Contains(err.Error(), c.mend) ||
			!strings.Contains(err.Error(), "panes partition 0") {
			t.Errorf("%v: panes end with %v, want an error with %q", c.code, err, c.mend)
		}
		if got := kafkatest.ReadAll(t, brokers, "panes"); len(got) != 0 {
			t.Errorf("%v: %d panes are written, and will be again", c.code, len(got))
		}
		lost := 9
		if c.code == kafka.InvalidRecord {
			lost = 1
		}
		err = s.Write(t.Context(), letters)
		want := map[pipeline.Refusal]int64{{Stream: pipeline.StreamDeadLetter, Reason: c.reason}: int64(lost)}
		if !errors.As(err, &refused) || !maps.Equal(refused.By, want) {
			t.Errorf("%v: dead letters end with %v, want %v", c.code, err, want)
		}
		if got := kafkatest.ReadAll(t, brokers, "letters"); len(got) != 9-lost {
			t.Errorf("%v: %d dead letters are written, want %d", c.code, len(got), 9-lost)
		}
		// Somebody mends it.
		client.Transport = client.Transport.(*refusing).RoundTripper
		if err := s.Write(t.Context(), panes); err != nil {
			t.Errorf("%v: after it was mended: %v", c.code, err)
		}
		if got := kafkatest.ReadAll(t, brokers, "panes"); len(got) != 9 {
			t.Errorf("%v: %d panes after it was mended", c.code, len(got))
		}
	}
}
