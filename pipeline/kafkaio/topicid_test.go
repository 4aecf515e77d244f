package kafkaio

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestTopicIDs: a topic that is deleted and made again has another id.
func TestTopicIDs(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 3, "a", "b")
	c := newClient(t, brokers)
	ids := func() []TopicID {
		t.Helper()
		ids, err := TopicIDs(t.Context(), c, "b", "a")
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first := ids()
	if first[0] == first[1] || first[0] == (TopicID{}) || ids()[0] != first[0] {
		t.Errorf("ids %x, then %x; want two that stay", first, ids())
	}
	res, err := c.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"a"}})
	if err != nil || res.Errors["a"] != nil {
		t.Fatalf("delete: %v, %v", err, res)
	}
	if _, err := TopicIDs(t.Context(), c, "a"); !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("id of a topic that is not there: %v", err)
	}
	kafkatest.CreateTopics(t, brokers, 3, "a")
	if second := ids(); second[1] == first[1] || second[0] != first[0] {
		t.Errorf("ids %x after a was made again, were %x", second, first)
	}
}

// TestDoubt: a source tells that its topic was not there before it hands out records of the one in its place.
func TestDoubt(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "a")
	kafkatest.Write(t, brokers, kafka.Message{Topic: "a", Value: []byte("old")})
	c := newClient(t, brokers)
	var doubts atomic.Int64
	src := NewSource(Spec{Client: c, Topics: map[pipeline.Input]string{pipeline.Logits: "a"},
		Next: map[pipeline.Input]int64{pipeline.Logits: 0}, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Doubt: func() { doubts.Add(1) }})
	defer src.Close()
	next := func(want string) {
		t.Helper()
		if r, err := src.Next(t.Context()); err != nil || string(r.Value) != want {
			t.Fatalf("got %q, %v; want %q", r.Value, err, want)
		}
	}
	next("old")
	if n := doubts.Load(); n != 0 {
		t.Errorf("%d doubts of a topic that is there", n)
	}
	res, err := c.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"a"}})
	if err != nil || res.Errors["a"] != nil {
		t.Fatalf("delete: %v, %v", err, res)
	}
	eventually.True(t, "doubt", func() bool { return doubts.Load() > 0 })
	kafkatest.CreateTopics(t, brokers, 1, "a")
	kafkatest.Write(t, brokers, kafka.Message{Topic: "a", Value: []byte("0")},
		kafka.Message{Topic: "a", Value: []byte("1")})
	next("1")
}
