package producer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// losing loses the connection behind some produce requests, which are written, or refuses all after so many.
type losing struct {
	kafka.RoundTripper
	n         atomic.Int64
	lose      int64 // the answers of the first so many
	stopAfter int64 // 0: never
}

func (l *losing) RoundTrip(ctx context.Context, a net.Addr, r kafka.Request) (kafka.Response, error) {
	if r.ApiKey() != protocol.Produce {
		return l.RoundTripper.RoundTrip(ctx, a, r)
	}
	n := l.n.Add(1)
	if l.stopAfter > 0 && n > l.stopAfter {
		return nil, kafka.TopicAuthorizationFailed
	}
	resp, err := l.RoundTripper.RoundTrip(ctx, a, r)
	if n <= l.lose {
		return nil, io.ErrUnexpectedEOF
	}
	return resp, err
}

// TestProduceSurvivesLostConnections: what may not be written is sent again, and it is said how much.
func TestProduceSurvivesLostConnections(t *testing.T) {
	const rows = 400
	brokers := kafkatest.Start(t)
	topics := config.Default().Topics
	kafkatest.CreateTopics(t, brokers, 2, topics.Logits, topics.Labels)
	client := testClient(brokers)
	client.Transport = &losing{RoundTripper: client.Transport, lose: 3}
	s, err := Send(t.Context(), client, testFeed(t, rows, 2), Options{Logits: topics.Logits, Labels: topics.Labels})
	if err != nil || s.Rows != rows || s.Again == 0 || s.Acknowledged != rows {
		t.Errorf("got %+v, %v, want %d rows, some messages again", s, err, rows)
	}
	values := map[string]int{}
	for _, m := range kafkatest.ReadAll(t, brokers, topics.Logits) {
		values[string(m.Value)]++
	}
	want := 0
	for f := testFeed(t, rows, 2); ; {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if m.Stream == feed.Logits && m.Rows > 0 {
			if want++; values[string(m.Value)] == 0 {
				t.Errorf("the message of row %d is missing", m.Row)
			}
		}
	}
	if want == 0 {
		t.Error("no messages")
	}
}

// TestProduceGoesOn: where a stream ended, another with Skip goes on, and no row or label is missing.
func TestProduceGoesOn(t *testing.T) {
	const rows = 400
	ended := 0
	for _, stop := range []int64{1, 2, 3, 5, 9, 13, 21, 29} { // each of four partitions takes a request at least
		brokers := kafkatest.Start(t)
		topics := config.Default().Topics
		kafkatest.CreateTopics(t, brokers, 2, topics.Logits, topics.Labels)
		client := testClient(brokers)
		plain := client.Transport
		client.Transport = &losing{RoundTripper: plain, stopAfter: stop}
		o := Options{Logits: topics.Logits, Labels: topics.Labels}
		s, err := Send(t.Context(), client, testFeed(t, rows, 2), o)
		if err == nil {
			continue // few requests took all of it
		}
		if s.Acknowledged >= rows {
			t.Fatalf("stopped after %d requests: %d rows are acknowledged", stop, s.Acknowledged)
		}
		ended++
		client.Transport = plain
		if _, err := Send(t.Context(), client, skippingFeed(t, rows, 2, s.Acknowledged), o); err != nil {
			t.Fatal(err)
		}
		for _, topic := range []string{topics.Logits, topics.Labels} {
			if got := idsIn(t, brokers, topic); len(got) != rows {
				t.Errorf("stopped after %d requests, went on at %d: %s has %d rows", stop, s.Acknowledged, topic,
					len(got))
			}
		}
	}
	if ended < 3 {
		t.Errorf("%d streams ended early, want 3 at least", ended)
	}
}

// idsIn are the ids of the rows of a topic.
func idsIn(t *testing.T, brokers []string, topic string) map[arrowio.ID]bool {
	t.Helper()
	out := map[arrowio.ID]bool{}
	kind := arrowio.Predictions
	if topic == config.Default().Topics.Labels {
		kind = arrowio.Labels
	}
	for _, m := range kafkatest.ReadAll(t, brokers, topic) {
		if len(m.Value) == 0 {
			continue // a watermark
		}
		batches, err := arrowio.NewDecoder(arrowio.Options{}).Decode(m.Value, arrowio.Origin{}, kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			for _, id := range b.IDs {
				out[id] = true
			}
		}
	}
	return out
}
