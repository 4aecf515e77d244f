package kafkatest

import (
	"fmt"
	"testing"

	"github.com/segmentio/kafka-go"
)

func TestWriteReadAll(t *testing.T) {
	brokers := Start(t)
	CreateTopics(t, brokers, 3, "a", "empty")
	var msgs []kafka.Message
	for i := range 30 {
		msgs = append(msgs, kafka.Message{Topic: "a", Partition: i % 3, Key: []byte{byte(i)},
			Value: fmt.Append(nil, i)})
	}
	Write(t, brokers, msgs...)
	got := ReadAll(t, brokers, "a")
	if len(got) != len(msgs) {
		t.Fatalf("got %d messages, want %d", len(got), len(msgs))
	}
	for i, m := range got {
		// Partition p holds p, p+3, p+6, …
		want := fmt.Sprint(i/10 + i%10*3)
		if string(m.Value) != want || m.Partition != i/10 || m.Offset != int64(i%10) {
			t.Errorf("message %d: got %d@%d %s, want %d@%d %s", i, m.Partition, m.Offset, m.Value, i/10, i%10, want)
		}
	}
	if got := ReadAll(t, brokers, "empty"); len(got) != 0 {
		t.Errorf("empty topic: got %d messages, want 0", len(got))
	}
}

func TestStartDirKeepsData(t *testing.T) {
	dir := t.TempDir()
	t.Run("write", func(t *testing.T) {
		brokers := StartDir(t, dir)
		CreateTopics(t, brokers, 1, "kept")
		Write(t, brokers, kafka.Message{Topic: "kept", Value: []byte("x")})
	})
	brokers := StartDir(t, dir)
	if got := ReadAll(t, brokers, "kept"); len(got) != 1 || string(got[0].Value) != "x" {
		t.Errorf("after restart: got %v, want one message x", got)
	}
}
