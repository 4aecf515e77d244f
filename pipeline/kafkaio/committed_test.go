package kafkaio

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// producer writes to partition 0 of topic z; with an id, in transactions.
func producer(t *testing.T, brokers []string, id string) *kgo.Client {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic("z"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if id != "" {
		opts = append(opts, kgo.TransactionalID(id))
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func send(t *testing.T, c *kgo.Client, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := c.ProduceSync(context.Background(), &kgo.Record{Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatalf("produce %s: %v", v, err)
		}
	}
}

// TestAbortedRecordsAreNoRecords interleaves two transactional producers and one without: of the same producer one
// transaction is aborted and the next one committed, and one is still open.
func TestAbortedRecordsAreNoRecords(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	ctx := context.Background()
	one, two, plain := producer(t, brokers, "one"), producer(t, brokers, "two"), producer(t, brokers, "")
	begin := func(c *kgo.Client) {
		t.Helper()
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
	}
	end := func(c *kgo.Client, commit kgo.TransactionEndTry) {
		t.Helper()
		if err := c.EndTransaction(ctx, commit); err != nil {
			t.Fatal(err)
		}
	}
	begin(one)
	begin(two)
	send(t, one, "no1", "no2")
	send(t, plain, "p1")
	send(t, two, "yes1")
	end(one, kgo.TryAbort)
	send(t, two, "yes2")
	begin(one)
	send(t, one, "yes3")
	end(one, kgo.TryCommit)
	end(two, kgo.TryCommit)
	begin(two)
	send(t, two, "no3")
	end(two, kgo.TryAbort)
	send(t, plain, "p2")
	begin(one)
	send(t, one, "open")
	send(t, plain, "behind")

	for _, size := range []int{1 << 20, 200} { // all in one response; a response or two a batch
		s := source(t, Spec{
			Client:   newClient(t, brokers),
			Topics:   map[pipeline.Input]string{pipeline.Logits: "z"},
			MaxBytes: size,
			Next:     map[pipeline.Input]int64{pipeline.Logits: -1},
		})
		got := values(read(t, s, func(r pipeline.Record) bool { return string(r.Value) == "p2" }))
		if want := "p1 yes1 yes2 yes3 p2"; got != want {
			t.Errorf("responses of %d bytes: got %s, want %s", size, got, want)
		}
	}
	// What an open transaction holds back is not lost: it comes with the marker, aborted or not.
	s := source(t, Spec{Client: newClient(t, brokers), Topics: map[pipeline.Input]string{pipeline.Logits: "z"},
		Next: map[pipeline.Input]int64{pipeline.Logits: -1}})
	read(t, s, func(r pipeline.Record) bool { return string(r.Value) == "p2" })
	end(one, kgo.TryCommit)
	if got, want := values(read(t, s, func(r pipeline.Record) bool { return string(r.Value) == "behind" })),
		"open behind"; got != want {
		t.Errorf("after the open transaction's end: got %s, want %s", got, want)
	}
}
