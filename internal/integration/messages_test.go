//go:build integration

package integration

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/realdata"
)

// loadRows reads the logits of one array of a data set, with its labels.
func loadRows(t *testing.T, file, array string, k int) *feed.Rows {
	t.Helper()
	scores, labels := realdata.Scores(t, file, array, "test_labels")
	return &feed.Rows{N: len(labels), K: k, Scores: scores, Label: labels}
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
		k := kafka.Message{Topic: topic, Partition: int(m.Partition), Key: m.Key, Value: m.Value,
			Time: time.Unix(0, m.Time)}
		for _, h := range m.Headers {
			k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		msgs = append(msgs, k)
		size += len(m.Value)
	}
	return msgs, size, false
}
