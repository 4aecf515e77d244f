package scale

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// TestOneOrderAtATime: an open order refuses another, takes up its like, and one of two processes takes each step.
func TestOneOrderAtATime(t *testing.T) {
	ctx := context.Background()
	store := &dirstore.Store{Dir: t.TempDir(), Keep: 2}
	open := func() *Book {
		b := &Book{Store: store, Group: "g", Log: slog.New(slog.DiscardHandler), First: 4}
		if err := b.Load(ctx); err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := open(), open()
	if err := a.Save(ctx, Plan{Of: 4, To: 12, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Save(ctx, Plan{Of: 4, To: 6, By: "bob"}); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("a second order: %v", err)
	}
	plan, changed := b.Now()
	if plan.To != 12 || plan.Of != 4 || !plan.Open() {
		t.Errorf("the second process has %+v", plan)
	}
	cfg := config.Default()
	topics := Topics{Config: &cfg}
	if err := b.Order(ctx, topics, Plan{To: 16}); err == nil || !strings.Contains(err.Error(),
		"an order for 12 is open") {
		t.Errorf("an order while one is open: %v", err)
	}
	if err := b.Order(ctx, topics, Plan{To: 12}); err != nil {
		t.Errorf("the same order: %v", err)
	}
	if missing, err := b.Waiting(ctx, plan); err != nil || len(missing) != 4 {
		t.Errorf("waits for %v, %v", missing, err)
	}
	if err := a.Save(ctx, Plan{Of: 12, Split: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told of the new plan")
	}
	for to, want := range map[int]string{5: "they only become more", 5000: "at most 4096"} {
		if err := b.Order(ctx, topics, Plan{To: to}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d shards of 12: %v", to, err)
		}
	}
}

// TestDoneWithoutCopies: an order ends also where somebody has removed what it would remove.
func TestDoneWithoutCopies(t *testing.T) {
	b := &Book{Store: &dirstore.Store{Dir: t.TempDir(), Keep: 2}, Group: "g", First: 4}
	if err := b.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Done(t.Context(), Plan{Of: 12, From: 4, Split: true}, 2); err != nil {
		t.Fatal(err)
	}
	if plan, _ := b.Now(); plan.Open() || plan.Of != 12 {
		t.Errorf("the plan is %+v", plan)
	}
}

// TestTopicsThatAreThere: an order makes the topics that shards will read, and takes those that are there only where
// they have the partitions that it needs and no record.
func TestTopicsThatAreThere(t *testing.T) {
	ctx := t.Context()
	brokers := kafkatest.Start(t)
	cfg := config.Default()
	cfg.Group = "g"
	logits, labels := kafkaclient.ByID(&cfg, cfg.Topics.Logits, 12), kafkaclient.ByID(&cfg, cfg.Topics.Labels, 12)
	kafkatest.CreateTopics(t, brokers, 12, labels)
	kafkatest.CreateTopics(t, brokers, 4, kafkaclient.ByID(&cfg, cfg.Topics.Labels, 6))
	kafkatest.CreateTopics(t, brokers, 8, kafkaclient.ByID(&cfg, cfg.Topics.Labels, 8))
	kafkatest.Write(t, brokers, kafka.Message{Topic: kafkaclient.ByID(&cfg, cfg.Topics.Labels, 8), Partition: 5,
		Value: []byte("x")})
	topics := Topics{Config: &cfg, Client: &kafka.Client{Addr: kafka.TCP(brokers...)}}
	b := &Book{Store: &dirstore.Store{Dir: t.TempDir(), Keep: 2}, Group: "g", Log: slog.New(slog.DiscardHandler),
		First: 4}
	if err := b.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[int]string{
		6: kafkaclient.ByID(&cfg, cfg.Topics.Labels, 6) + " is there with 4 partitions: delete it",
		8: kafkaclient.ByID(&cfg, cfg.Topics.Labels, 8) + " is there and has records that no shard has read: delete it",
	} {
		if err := b.Order(ctx, topics, Plan{To: to}); !errors.Is(err, ErrOrder) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d shards: %v, want %q", to, err, want)
		}
		if plan, _ := b.Now(); plan.Open() {
			t.Fatalf("an order that was refused is open: %+v", plan)
		}
	}
	if err := b.Order(ctx, topics, Plan{To: 12}); err != nil {
		t.Fatal(err)
	}
	plan, _ := b.Now()
	n, err := kafkaio.Partitions(ctx, topics.Client, logits)
	if plan.To != 12 || n != 12 || err != nil {
		t.Errorf("plan %+v, topic %s with %d partitions, %v", plan, logits, n, err)
	}
}

// TestShardsAreFound: one record in any partition of any topic that shards read says how many they are, since a process
// that is killed in its first second has written to few.
func TestShardsAreFound(t *testing.T) {
	ctx := t.Context()
	brokers := kafkatest.Start(t)
	cfg := config.Default()
	topics := Topics{Config: &cfg, Client: &kafka.Client{Addr: kafka.TCP(brokers...)}}
	for i, topic := range []string{kafkaclient.ByID(&cfg, cfg.Topics.Labels, 4),
		kafkaclient.ByID(&cfg, cfg.Topics.Logits, 12)} {
		n := 4 + 8*i
		kafkatest.CreateTopics(t, brokers, n, topic)
		if of, err := topics.Found(ctx); of != 4*i || err != nil {
			t.Errorf("found %d shards, %v, before a record of %d", of, err, n)
		}
		kafkatest.Write(t, brokers, kafka.Message{Topic: topic, Partition: n - 1, Value: []byte("x")})
		if of, err := topics.Found(ctx); of != n || err != nil {
			t.Errorf("found %d shards, %v, want %d", of, err, n)
		}
	}
}
