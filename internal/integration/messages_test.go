//go:build integration

package integration

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sbinet/npyio/npz"
	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
)

// loadRows reads the logits of one array and the labels of a data set.
func loadRows(t *testing.T, path, array string, k int) *feed.Rows {
	t.Helper()
	r, err := npz.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var scores []float32
	var labels []uint8
	if err := r.Read(array+".npy", &scores); err != nil {
		t.Fatalf("%s:%s: %v", path, array, err)
	}
	if err := r.Read("test_labels.npy", &labels); err != nil {
		t.Fatalf("%s:test_labels: %v", path, err)
	}
	rows := &feed.Rows{N: len(labels), K: k, Scores: scores, Label: make([]int32, len(labels))}
	for i, l := range labels {
		rows.Label[i] = int32(l)
	}
	return rows
}

// feedMessages takes messages from f until some n bytes are together or the feed ends; end says which.
func feedMessages(t testing.TB, f *feed.Feed, s settings, n int) (msgs []kafka.Message, size int, end bool) {
	t.Helper()
	for size < n {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return msgs, size, true
		}
		if err != nil {
			t.Fatal(err)
		}
		topic := s.topic(m.Stream.String())
		k := kafka.Message{Topic: topic, Partition: int(m.Partition), Key: m.Key, Value: m.Value, Time: time.Unix(0, m.Time)}
		for _, h := range m.Headers {
			k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		msgs = append(msgs, k)
		size += len(m.Value)
	}
	return msgs, size, false
}
