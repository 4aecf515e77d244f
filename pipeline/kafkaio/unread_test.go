package kafkaio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestRefusedReadsAreSaid: when brokers have refused to read a partition for a while, its source says so, in words and
// with what mends it, and does not pass for caught up. Brokers that are away are not its matter.
func TestRefusedReadsAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string // "": nothing is said
	}{
		{kafka.UnknownTopicOrPartition, "topics create"},
		{fmt.Errorf("fetch: %w", protocol.NewErrNoTopic("rows")), "topics create"},
		{kafka.TopicAuthorizationFailed, "plumbline doctor names the rights"},
		{protocol.NewErrNoLeader("rows", 0), "start the brokers"},
		{errors.New("batch at offset 7: CRC32C 1, written 2"), "topic rows cannot be read: batch at offset 7"},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, ""},
		{fmt.Errorf("read the answer: %w", io.ErrUnexpectedEOF), ""},
	} {
		f := &fetcher{topic: "rows", log: quiet}
		in := newInput(f)
		s := &Source{in: []*input{in}, order: []pipeline.Input{pipeline.Logits}}
		f.end.Store(0)
		f.fails(c.err)
		if got := s.Unread(); got != nil || !s.CaughtUp() {
			t.Errorf("%v: said at once: %v", c.err, got)
		}
		if refused := c.want != ""; s.Refused() != refused {
			t.Errorf("%v: refused %t, want %t", c.err, !refused, refused)
		}
		if r := f.refused.Load(); r != nil {
			f.refused.Store(&refusal{r.Unusable, time.Now().Add(-unreadNoted)})
		}
		f.fails(c.err)
		got := s.Unread()
		if _, known := s.Lags()[pipeline.Logits]; known != (c.want == "") {
			t.Errorf("%v: how far reading is behind is known: %t", c.err, known)
		}
		switch {
		case c.want == "":
			if got != nil || !s.CaughtUp() {
				t.Errorf("%v is no answer: %v", c.err, got)
			}
		case len(got) != 1 || got[0].Topic != "rows" || !strings.Contains(got[0].Err.Error(), c.want) || s.CaughtUp():
			t.Errorf("%v: %v, want %q, and not caught up", c.err, got, c.want)
		}
		f.works()
		if got := s.Unread(); got != nil || !s.CaughtUp() || s.Refused() || len(s.Lags()) != 1 {
			t.Errorf("%v is over: %v, lags %v", c.err, got, s.Lags())
		}
	}
}

// TestOutputsOfDeletedTopics: dead letters whose topic was deleted are given up, and an output whose topic was made
// again with fewer partitions finds its place there when its task tries again.
func TestOutputsOfDeletedTopics(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 3, "snapshots", "letters")
	client := newClient(t, brokers)
	quick := &kafka.Transport{MetadataTTL: 50 * time.Millisecond}
	t.Cleanup(quick.CloseIdleConnections)
	client.Transport = quick
	s, err := NewSink(t.Context(), client, map[pipeline.Stream]string{pipeline.StreamSnapshots: "snapshots",
		pipeline.StreamDeadLetter: "letters"}, 1<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"snapshots",
		"letters"}}); err != nil {
		t.Fatal(err)
	}
	s.absent["letters"] = time.Now().Add(-2 * topicPatience)
	err = s.Write(t.Context(), []pipeline.Message{{Stream: pipeline.StreamDeadLetter, Value: []byte("bad")}})
	var refused *pipeline.RefusedError
	want := pipeline.Refusal{Stream: pipeline.StreamDeadLetter, Reason: "topic"}
	if !errors.As(err, &refused) || refused.By[want] != 1 {
		t.Errorf("a dead letter without its topic: %v", err)
	}
	kafkatest.CreateTopics(t, brokers, 1, "snapshots")
	m := []pipeline.Message{{Stream: pipeline.StreamSnapshots, Partition: 2, Value: []byte("{}"), Time: 1}}
	if err := s.Write(t.Context(), m); !unknownTopic(err) {
		t.Errorf("a partition that is not there any more: %v", err)
	}
	if err := s.Write(t.Context(), m); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if got := kafkatest.ReadAll(t, brokers, "snapshots"); len(got) != 1 {
		t.Errorf("%d snapshots, want 1", len(got))
	}
}

// TestUnusableTopics: topics that are not there, or not for this user, are named; others are not. Who reads to the end
// of one that may only be written gets the error: there is no end to wait for.
func TestUnusableTopics(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.StartGuarded(t, "topic rows Read", "topic written Write")
	as := func(user string) *kafka.Client {
		transport := &kafka.Transport{SASL: plain.Mechanism{Username: user, Password: user}}
		t.Cleanup(transport.CloseIdleConnections)
		return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
	}
	if _, err := as("admin").CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: "rows", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "secret", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "written", NumPartitions: 1, ReplicationFactor: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := as("app").Produce(t.Context(), &kafka.ProduceRequest{Topic: "written", RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("a"))})}); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]error{"admin": nil, "app": kafka.TopicAuthorizationFailed} {
		got, err := UnusableTopics(t.Context(), as(user), "rows", "secret")
		if err != nil || (want == nil) != (len(got) == 0) || want != nil && (got[0].Topic != "secret" ||
			len(got) != 1 || !errors.Is(got[0].Err, want)) {
			t.Errorf("%s: %v, %v, want %v", user, got, err, want)
		}
	}
	spec := TailSpec{Client: as("admin"), MaxBytes: 1 << 20, Log: quiet}
	none := func(*pipeline.Record) {}
	if err := (Latest{Topic: "written", Offsets: 9}).Read(t.Context(), spec, none); err != nil {
		t.Errorf("the end of a topic: %v", err)
	}
	spec.Client = as("app")
	err := Latest{Topic: "written", Offsets: 9}.Read(t.Context(), spec, none)
	if !errors.Is(err, kafka.TopicAuthorizationFailed) {
		t.Errorf("the end of a topic that may only be written: %v", err)
	}
	got, err := UnusableTopics(t.Context(), as("admin"), "gone")
	if err != nil || len(got) != 1 || !errors.Is(got[0].Err, kafka.UnknownTopicOrPartition) {
		t.Errorf("a topic that is not there: %v, %v", got, err)
	}
}
