package kafkaio

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

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

// TestOpenTransactionIsTold: records behind one are no lag, so the log alone can say that they wait.
func TestOpenTransactionIsTold(t *testing.T) {
	var log bytes.Buffer
	f := &fetcher{topic: "z", partition: 3, log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	lines := func(want int, why string, after time.Duration, high, stable int64) {
		t.Helper()
		f.behindTransaction(&partitionAnswer{high: high, stable: stable}, now.Add(after))
		if got := strings.Count(log.String(), "level=WARN"); got != want {
			t.Errorf("%s: %d lines, want %d: %s", why, got, want, &log)
		}
	}
	lines(0, "begun", 0, 9, 5)
	lines(0, "short", 59*time.Second, 12, 5)
	lines(1, "a minute", time.Minute, 12, 5)
	lines(1, "at once again", 2*time.Minute, 13, 5)
	lines(2, "still open", 11*time.Minute, 13, 5)
	lines(2, "the next one", 12*time.Minute, 15, 14)
	lines(2, "ended", 14*time.Minute, 15, 15)
	lines(2, "another one", 15*time.Minute, 16, 15)
	if want := "topic=z partition=3 offset=5 behind=7 for=1m0s"; !strings.Contains(log.String(), want) {
		t.Errorf("no %q in %s", want, &log)
	}
}
