package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/metadata"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Cluster is what the brokers say about topics.
type Cluster struct {
	Brokers int
	Topics  map[string]Topic // those that are there, and that the user may see
	Hidden  map[string]bool  // those that the user may not see, whether or not they are there
}

// Topic is what the brokers say about one.
type Topic struct {
	Partitions, Leaderless, Behind int  // Behind: with fewer replicas in sync than there are
	InSync                         int  // replicas in sync of the partition that has the fewest
	Known, Read, Write             bool // what the user may do, where the brokers say it
}

// Bits of what a user may do.
const (
	mayRead    = 1 << 3
	mayWrite   = 1 << 4
	notKnown   = -1 << 31
	sinceTells = 8 // version of the request that asks for it
)

// Describe asks the first broker that answers. The client's own requests for metadata are answered from a cache, which
// does not know what a user may do.
func Describe(ctx context.Context, dialer *kafka.Dialer, cfg kafkaio.Config, topics []string) (Cluster, error) {
	var errs []error
	for _, addr := range cfg.Brokers {
		c, err := describe(ctx, dialer, addr, topics)
		if err == nil {
			return c, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return Cluster{}, errors.Join(errs...)
}

func describe(ctx context.Context, dialer *kafka.Dialer, addr string, topics []string) (Cluster, error) {
	conn, err := dialer.DialFunc(ctx, "tcp", addr)
	if err != nil {
		return Cluster{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return Cluster{}, err
	}
	kc := protocol.NewConn(conn, dialer.ClientID)
	res, err := kc.RoundTrip(&apiversions.Request{})
	if err != nil {
		return Cluster{}, err
	}
	versions := map[protocol.ApiKey]int16{}
	for _, k := range res.(*apiversions.Response).ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	kc.SetVersions(versions)
	tells := versions[protocol.Metadata] >= sinceTells
	res, err = kc.RoundTrip(&metadata.Request{TopicNames: topics, IncludeTopicAuthorizedOperations: tells})
	if err != nil {
		return Cluster{}, err
	}
	answer := res.(*metadata.Response)
	out := Cluster{Brokers: len(answer.Brokers), Topics: map[string]Topic{}, Hidden: map[string]bool{}}
	for _, t := range answer.Topics {
		switch kafka.Error(t.ErrorCode) {
		case 0, kafka.LeaderNotAvailable:
			out.Topics[t.Name] = topicOf(t, tells)
		case kafka.TopicAuthorizationFailed:
			out.Hidden[t.Name] = true
		}
	}
	return out, nil
}

func topicOf(t metadata.ResponseTopic, tells bool) Topic {
	may := t.TopicAuthorizedOperations
	out := Topic{Partitions: len(t.Partitions), Known: tells && may != notKnown, Read: may&mayRead != 0,
		Write: may&mayWrite != 0}
	for i, p := range t.Partitions {
		if p.LeaderID < 0 {
			out.Leaderless++
		}
		if len(p.IsrNodes) < len(p.ReplicaNodes) {
			out.Behind++
		}
		if n := len(p.IsrNodes); i == 0 || n < out.InSync {
			out.InSync = n
		}
	}
	return out
}
