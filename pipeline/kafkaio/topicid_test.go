package kafkaio

import (
	"errors"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
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
