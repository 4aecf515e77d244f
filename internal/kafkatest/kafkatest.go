package kafkatest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// timeout bounds every helper; an in-process broker answers in milliseconds.
const timeout = 20 * time.Second

// messageMax is what deploy/kafka allows too; kfake's default of 1 MB is one batch of 256 rows at K = 1000.
const messageMax = "16777216"

// Start runs a one-broker Kafka until the test ends and returns its address. Topics are not created on first use.
func Start(t testing.TB) (brokers []string) {
	t.Helper()
	return StartDir(t, "")
}

// StartMany is Start with several brokers, so that not each leads every partition and every group.
func StartMany(t testing.TB, n int) (brokers []string) {
	t.Helper()
	return start(t, kfake.NumBrokers(n))
}

// StartDir is Start with a directory that keeps topics and offsets over restarts; "" keeps them in memory.
func StartDir(t testing.TB, dir string) (brokers []string) {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	if dir != "" {
		opts = append(opts, kfake.DataDir(dir))
	}
	return start(t, opts...)
}

func start(t testing.TB, opts ...kfake.Opt) (brokers []string) {
	t.Helper()
	cluster, err := kfake.NewCluster(append(opts,
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": messageMax}))...)
	if err != nil {
		t.Fatalf("start in-process kafka: %v", err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()
}

// StartGuarded is Start with users, by PLAIN: "admin", who may do everything, and "app", who may do what rules say:
// "topic logits Read", or "group plumbline* Read,Describe" with a prefix. Passwords are the names.
func StartGuarded(t testing.TB, rules ...string) (brokers []string) {
	t.Helper()
	var acls []kfake.ACL
	for _, rule := range rules {
		parts := strings.Fields(rule)
		kind, err := kmsg.ParseACLResourceType(parts[0])
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		acl := kfake.ACL{Resource: kind, Name: parts[1], Pattern: kmsg.ACLResourcePatternTypeLiteral, Allow: true}
		if prefix, ok := strings.CutSuffix(parts[1], "*"); ok {
			acl.Name, acl.Pattern = prefix, kmsg.ACLResourcePatternTypePrefixed
		}
		for op := range strings.SplitSeq(parts[2], ",") {
			if acl.Operation, err = kmsg.ParseACLOperation(op); err != nil {
				t.Fatalf("%s: %v", rule, err)
			}
			acls = append(acls, acl)
		}
	}
	return start(t, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "app", "app", acls...))
}

// CreateTopics makes topics with the given number of partitions; one that exists is an error of the test.
func CreateTopics(t testing.TB, brokers []string, partitions int, topics ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	req := &kafka.CreateTopicsRequest{Addr: kafka.TCP(brokers...)}
	for _, name := range topics {
		req.Topics = append(req.Topics, kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1})
	}
	resp, err := (&kafka.Client{Addr: req.Addr}).CreateTopics(ctx, req)
	if err != nil {
		t.Fatalf("create topics %v: %v", topics, err)
	}
	for name, err := range resp.Errors {
		if err != nil {
			t.Fatalf("create topic %s: %v", name, err)
		}
	}
}

// Write appends messages to their Topic and Partition, exactly as set, and waits until they are acknowledged.
func Write(t testing.TB, brokers []string, msgs ...kafka.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	want := make([]int, len(msgs))
	for i := range msgs {
		want[i] = msgs[i].Partition
	}
	// A transport of its own: the default one may hold metadata from before the topic was made.
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{
		Transport: transport, Addr: kafka.TCP(brokers...), RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond, BatchBytes: 6 << 20,
		WriteTimeout: timeout, ReadTimeout: timeout, // a batch that is sent again would be there twice
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return m.WriterData.(int) }),
	}
	defer w.Close()
	sent := make([]kafka.Message, len(msgs))
	for i, m := range msgs {
		m.WriterData = want[i]
		sent[i] = m
	}
	if err := w.WriteMessages(ctx, sent...); err != nil {
		t.Fatalf("write %d messages: %v", len(msgs), err)
	}
}

// ReadAll returns the messages that the topic holds now, partition by partition, in offset order.
func ReadAll(t testing.TB, brokers []string, topic string) []kafka.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		t.Fatalf("metadata of %s: %v", topic, err)
	}
	if err := meta.Topics[0].Error; err != nil {
		t.Fatalf("metadata of %s: %v", topic, err)
	}
	var all []kafka.Message
	for _, p := range meta.Topics[0].Partitions {
		msgs, err := readPartition(ctx, brokers[0], topic, p.ID)
		for err != nil && ctx.Err() == nil { // a broker that stood still for a while leads nothing for a moment
			time.Sleep(200 * time.Millisecond)
			msgs, err = readPartition(ctx, brokers[0], topic, p.ID)
		}
		if err != nil {
			t.Fatalf("read %s/%d: %v", topic, p.ID, err)
		}
		all = append(all, msgs...)
	}
	return all
}

// readPartition reads a partition once. A reader that gets nothing for a while makes room for another try: on a busy
// machine one has waited for all of the time.
func readPartition(ctx context.Context, broker, topic string, partition int) ([]kafka.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout/4)
	defer cancel()
	conn, err := kafka.DialLeader(ctx, "tcp", broker, topic, partition)
	if err != nil {
		return nil, err
	}
	first, last, err := conn.ReadOffsets()
	conn.Close()
	if err != nil || first == last {
		return nil, err
	}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{broker}, Topic: topic, Partition: partition, MaxBytes: 32 << 20,
		MaxWait: 50 * time.Millisecond,
	})
	defer r.Close()
	if err := r.SetOffset(first); err != nil {
		return nil, err
	}
	var msgs []kafka.Message
	for {
		m, err := r.ReadMessage(ctx)
		if errors.Is(err, io.EOF) {
			return msgs, nil
		}
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, m)
		if m.Offset >= last-1 {
			return msgs, nil
		}
	}
}
