package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/faultlog"
)

// unreadNoted is how long brokers may refuse to read a partition before that is said: a topic may have been made a
// moment ago, and leaders change.
const unreadNoted = 10 * time.Second

// Unusable is a topic that brokers refuse to read, or of which they have no partitions to use.
type Unusable struct {
	Topic string
	Err   error // in words
}

// refusal is the latest answer by which brokers refuse to read a partition, and since when they do.
type refusal struct {
	Unusable
	since time.Time
}

// Unread lists the inputs that brokers have refused to read for a while; any goroutine may call it. Reading goes on
// by itself once they do not. Brokers that do not answer are no refusal: see Group.Silent.
func (s *Source) Unread() (out []Unusable) {
	for _, in := range s.in {
		if u := in.f.unread(); u != nil {
			out = append(out, *u)
		}
	}
	return out
}

// Refused reports whether brokers refuse to read an input now, if only since a moment ago. Any goroutine may call it.
func (s *Source) Refused() bool {
	for _, in := range s.in {
		if in.f.refused.Load() != nil {
			return true
		}
	}
	return false
}

// fails takes note of a read that failed.
func (f *fetcher) fails(err error) {
	if !unanswered(err) {
		now := refusal{Unusable{f.topic, inWords(f.topic, err)}, time.Now()}
		if was := f.refused.Load(); was != nil {
			now.since = was.since
		}
		f.refused.Store(&now)
	}
	f.log.Warn("fetch, trying again", "topic", f.topic, "partition", f.partition, "offset", f.next, faultlog.Err(err))
}

// works takes note of a read that did not fail.
func (f *fetcher) works() { f.refused.Store(nil) }

// unread returns what brokers have said for a while; nil if they have not.
func (f *fetcher) unread() *Unusable {
	r := f.refused.Load()
	if r == nil || time.Since(r.since) < unreadNoted {
		return nil
	}
	return &r.Unusable
}

// unanswered reports whether an error is that of a connection, not a broker's answer. kafka.Error is a net.Error, too.
func unanswered(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, net.ErrClosed)
}

// unknownTopic reports whether an error says that there is no such topic or partition, or that this user may not see
// it: without a request, kafka-go cannot tell these apart.
func unknownTopic(err error) bool {
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) ||
		errors.Is(err, protocol.ErrNoPartition)
}

// inWords says what an answer about a topic means and what mends it.
func inWords(topic string, err error) error {
	switch {
	case errors.Is(err, kafka.TopicAuthorizationFailed):
		return fmt.Errorf("topic %s: %w (plumbline doctor names the rights that this user lacks)", topic, err)
	case unknownTopic(err):
		return fmt.Errorf("topic %s does not exist any more, or this user may not see it: plumbline topics create "+
			"-c FILE makes it again: %w", topic, err)
	case errors.Is(err, kafka.LeaderNotAvailable), errors.Is(err, kafka.NotLeaderForPartition),
		errors.Is(err, protocol.ErrNoLeader):
		return fmt.Errorf("topic %s has partitions that no broker leads: start the brokers that have their replicas: "+
			"%w", topic, err)
	}
	return fmt.Errorf("topic %s cannot be read: %w", topic, err)
}

// UnusableTopics asks the brokers which topics do not exist, are not for this user, or have no leader. It returns what
// that means, in words, in the order of topics. Brokers before Kafka 2.8 are not asked.
func UnusableTopics(ctx context.Context, c *kafka.Client, topics ...string) (out []Unusable, err error) {
	by, err := askTopicIDs(ctx, c, topics)
	if by == nil || err != nil {
		return nil, err
	}
	for _, name := range topics {
		if err := topicError(by[name]); err != nil {
			out = append(out, Unusable{name, inWords(name, err)})
		}
	}
	return out, nil
}

// topicError is what an answer says about a topic; nil: it can be used.
func topicError(t *kmsg.MetadataResponseTopic) error {
	switch {
	case t == nil:
		return kafka.UnknownTopicOrPartition
	case t.ErrorCode != 0:
		return kafka.Error(t.ErrorCode)
	}
	for i := range t.Partitions {
		if t.Partitions[i].Leader < 0 {
			return kafka.LeaderNotAvailable
		}
	}
	return nil
}
