package kafkaio

import (
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

const (
	// maxRequest is what every broker takes in one request (socket.request.max.bytes is 100 MiB); messages are far
	// smaller.
	maxRequest = 64 << 20
	// maxRefused is how many dead letters of one write are tried one by one; then the rest of the batch is given up.
	maxRefused = 100
	// topicPatience is how long the dead-letter topic may be unknown before dead letters are given up: it may be about
	// to be made.
	topicPatience = 10 * time.Second
)

// tooLarge is the only reason for which an output is lost, see lost.
const tooLarge = "too_large"

// refusedFor lists the brokers' errors that are about a record, with the reason that metrics and status give, and what
// a person can do where the record itself is good.
var refusedFor = []struct {
	err          error
	reason, mend string
}{
	{kafka.MessageSizeTooLarge, tooLarge, largerTopic},
	{kafka.RecordListTooLarge, tooLarge, largerTopic},
	{kafka.InvalidMessageSize, tooLarge, largerTopic},
	{kafka.InvalidTimestamp, "timestamp", "set the clock of this machine or of the broker, or the topic's " +
		"message.timestamp.type to LogAppendTime"},
	{kafka.InvalidRecord, "invalid", "records without a key need a topic whose cleanup.policy is delete and which " +
		"demands no schema: plumbline doctor names the command that mends it"},
	{kafka.PolicyViolation, "policy", "a policy of the brokers forbids what this topic is sent"},
}

const largerTopic = "the topic's max.message.bytes must be above kafka.message_max_bytes: plumbline doctor says by " +
	"how much"

// ofRecord reports whether an error is about one record of the request: the others may be written without it.
func ofRecord(err error) bool {
	for _, r := range refusedFor {
		if errors.Is(err, r.err) {
			return true
		}
	}
	return false
}

// lost reports whether a record that was refused alone is given up: one above the configured size, which no setting of
// the topic makes good. All else is a fault of the topic or of a clock, which a person must mend, and numbers would be
// wrong without the record: a compacted topic refuses every record without a key, as are the panes' punctuations, the
// calibrated stream and split inputs. Dead letters are evidence only.
func (s *Sink) lost(l lane, r *kafka.Record, err error) bool {
	switch {
	case !ofRecord(err):
		return false
	case l.stream == pipeline.StreamDeadLetter:
		return true
	}
	return reasonOf(err) == tooLarge && bytesOf([]kafka.Record{*r}) > s.maxBytes
}

// separable reports whether a refused request is tried again in parts, since some of it may be given up or is good
// alone. Else its good records would be written again with each attempt of the task, until somebody mends the topic.
func separable(l lane, err error) bool {
	return ofRecord(err) && (l.stream == pipeline.StreamDeadLetter || reasonOf(err) == tooLarge)
}

// unwritten is the error of records that are not given up; it becomes the cause in the task's status.
func unwritten(l lane, n int, err error) error {
	err = fmt.Errorf("produce %d records to %s partition %d: %w", n, l.topic, l.partition, err)
	for _, r := range refusedFor {
		if errors.Is(err, r.err) {
			return fmt.Errorf("%w (%s)", err, r.mend)
		}
	}
	return err
}

// undate sets the time of records to now.
func undate(rs []kafka.Record) {
	now := time.Now()
	for i := range rs {
		rs[i].Time = now
	}
}

// reasonOf returns the reason of a refusal for metrics and status.
func reasonOf(err error) string {
	for _, r := range refusedFor {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	if errors.Is(err, kafka.TopicAuthorizationFailed) {
		return "authorization"
	}
	return "topic"
}

// hopeless reports whether a dead letter is given up although nothing is wrong with it: its topic cannot be used,
// which must not stop the task. Other outputs are retried, or end the task with the error: without them numbers would
// be wrong.
func (s *Sink) hopeless(l lane, err error) bool {
	if l.stream != pipeline.StreamDeadLetter {
		return false
	}
	if !unknownTopic(err) {
		return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.InvalidTopic)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.absent[l.topic].IsZero() {
		s.absent[l.topic] = time.Now()
	}
	return time.Since(s.absent[l.topic]) > topicPatience
}

// known notes that a topic has taken records.
func (s *Sink) known(topic string) {
	s.mu.Lock()
	delete(s.absent, topic)
	s.mu.Unlock()
}

// refusals has the messages that were refused in one write.
type refusals struct{ pipeline.RefusedError }

func (r *refusals) err() error {
	if r.By == nil {
		return nil
	}
	return &r.RefusedError
}

// many reports whether so many dead letters were refused that the rest is not tried one by one.
func (r *refusals) many(stream pipeline.Stream) bool {
	n := int64(0)
	for of, k := range r.By {
		if of.Stream == stream {
			n += k
		}
	}
	return stream == pipeline.StreamDeadLetter && n >= maxRefused
}

// drop counts n records as refused for good.
func (s *Sink) drop(l lane, n, bytes int, err error, refused *refusals) {
	if refused.By == nil {
		refused.By, refused.Err = map[pipeline.Refusal]int64{}, err
	}
	refused.By[pipeline.Refusal{Stream: l.stream, Reason: reasonOf(err)}] += int64(n)
	s.log.Error("the broker refuses messages for good: they are dropped, and counted", "output", l.stream,
		"reason", reasonOf(err), "messages", n, "topic", l.topic, "partition", l.partition, "bytes", bytes,
		"kafka.message_max_bytes", s.maxBytes, faultlog.Err(err))
}

func bytesOf(rs []kafka.Record) (n int) {
	for i := range rs {
		rewind(&rs[i]) // Len is of what has not been read
		for _, b := range []kafka.Bytes{rs[i].Key, rs[i].Value} {
			if b != nil {
				n += b.Len()
			}
		}
		for _, h := range rs[i].Headers {
			n += len(h.Key) + len(h.Value)
		}
	}
	return n
}
