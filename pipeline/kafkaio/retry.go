package kafkaio

import (
	"errors"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/backoff"
)

// retries are the pauses between attempts at a broker.
func retries() *backoff.Backoff { return backoff.New(500*time.Millisecond, 10*time.Second) }

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	for _, p := range []error{kafka.MessageSizeTooLarge, kafka.InvalidMessageSize, kafka.TopicAuthorizationFailed,
		kafka.SASLAuthenticationFailed, kafka.InvalidTopic} {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// rewind makes a record's key and value readable from the start again.
func rewind(r *kafka.Record) {
	for _, b := range []kafka.Bytes{r.Key, r.Value} {
		if s, ok := b.(io.Seeker); ok {
			_, _ = s.Seek(0, io.SeekStart) // in memory: cannot fail
		}
	}
}
