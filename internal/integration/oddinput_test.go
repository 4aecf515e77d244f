//go:build integration

package integration

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// oddStream collects messages for one partition, since what a shard learns depends on the order, and what must be
// counted of them.
type oddStream struct {
	t           *testing.T
	s           settings
	msgs        []kafka.Message
	rows        int64 // decoded
	rejected    map[string]int64
	deadLetters map[string]int64
	duplicates  int64
	labels      int64
}

func (o *oddStream) send(topic string, value []byte) {
	o.msgs = append(o.msgs, kafka.Message{Topic: o.s.topic(topic), Partition: 0, Value: value, Time: start})
}

// predictions sends n rows of model net, changed by edit.
func (o *oddStream) predictions(prefix string, n, k int, edit func(*arrowio.Columns)) {
	o.t.Helper()
	o.rows += int64(n)
	o.send("logits", encodeOdd(o.t, prefix, n, k, edit))
}

func encodeOdd(t *testing.T, prefix string, n, k int, edit func(*arrowio.Columns)) []byte {
	t.Helper()
	c := arrowio.Columns{Model: "net", Version: "1", K: k, Logits: make([]float32, n*k)}
	for i := range n {
		c.IDs = append(c.IDs, fmt.Sprintf("%s-%d", prefix, i))
		c.TS = append(c.TS, start.UnixNano()+int64(i))
		c.Logits[i*k+i%k] = 2
	}
	if edit != nil {
		edit(&c)
	}
	v, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// file sends a message that pyarrow wrote.
func (o *oddStream) file(name string) {
	o.t.Helper()
	v, err := os.ReadFile(filepath.Join(root, "arrowio", "testdata", name+".arrow"))
	if err != nil {
		o.t.Fatal(err)
	}
	o.send("logits", v)
}

func (o *oddStream) dead(reason string) { o.deadLetters[reason]++ }

func (o *oddStream) refused(reason string, rows int64) {
	o.rejected[reason] += rows
	o.dead(reason)
}

// fill makes the stream: everything that a topic may hold and nobody promised not to send.
func (o *oddStream) fill() {
	o.predictions("first", 1, 10, nil) // three messages that agree settle the number of classes
	o.predictions("second", 1, 10, nil)
	o.predictions("good", 4, 10, nil)
	o.predictions("good", 4, 10, nil) // sent twice
	o.duplicates += 4

	o.predictions("k", 3, 12, nil) // another number of classes of the same model version
	o.refused("classes", 3)
	o.predictions("k2", 3, 12, func(c *arrowio.Columns) { c.Version = "new" }) // which a new version may have

	// The schema changes from message to message: columns more, columns less.
	o.predictions("wide", 4, 10, func(c *arrowio.Columns) {
		c.Served, c.Weight = []float32{.5, .6, .7, .8}, []float32{1, 2, 1, 2}
		c.D, c.Features = 1, []float32{1, 2, 3, 4}
		c.Slices = []arrowio.StringColumn{{Name: "region", Values: []string{"eu", "us", "eu", "us"}}}
	})
	o.predictions("inline", 2, 10, func(c *arrowio.Columns) { c.IDs, c.Label = nil, []int32{0, 1} })
	o.send("logits", encodeOdd(o.t, "x", 2, 10, func(c *arrowio.Columns) { c.IDs = nil }))
	o.dead("column_missing")
	o.send("logits", encodeOdd(o.t, "x", 2, 10, func(c *arrowio.Columns) { c.Model = "" }))
	o.dead("model_missing")
	o.send("labels", encodeOdd(o.t, "x", 2, 10, nil)) // a prediction on the labels topic
	o.dead("column_missing")

	// Event times: far ahead, the end of time; and long ago, which is only late.
	o.predictions("ahead", 1, 10, func(c *arrowio.Columns) { c.TS[0] = start.AddDate(10, 0, 0).UnixNano() })
	o.refused("too_far_ahead", 1)
	o.predictions("never", 2, 10, func(c *arrowio.Columns) { c.TS = []int64{math.MinInt64, math.MaxInt64} })
	o.refused("ts_range", 2)
	o.predictions("past", 1, 10, func(c *arrowio.Columns) {
		c.TS[0] = time.Date(1900, 1, 1, 0, 0, 0, 0,
			time.UTC).UnixNano()
	})

	o.predictions("null", 3, 10, func(c *arrowio.Columns) { c.IDs[1] = "" })
	o.refused("null_row", 1)
	o.file("lists") // rows without scores and without a model, dictionaries, int64 ids
	o.rows += 6
	o.refused("null_row", 3)

	o.file("lz4")
	o.file("zstd")
	o.deadLetters["compressed"] += 2

	// Several record batches, whose dictionaries grow and are replaced; K = 5 both.
	o.file("deltas")
	o.file("replaced")
	o.rows += 12
	o.duplicates += 10 // two ids, six times each: one waits for its label, the other has it with it each time

	v, err := arrowio.EncodeLabels("net", "1", []string{"good-0", "good-1", "good-2", "good-3"}, nil,
		[]int32{0, 1, 2, 3})
	if err != nil {
		o.t.Fatal(err)
	}
	o.send("labels", v)
	o.rows += 4
	o.labels += 4
}

// TestOddInput sends a real broker what a decoder alone cannot be tried with: messages that are each well formed and
// odd in what they follow, and transactions. Every row has the fate that the documentation says, and no other.
func TestOddInput(t *testing.T) {
	t.Parallel()
	s := configure(t, oneDay+"slices: {columns: [region]}\n")
	o := &oddStream{t: t, s: s, rejected: map[string]int64{}, deadLetters: map[string]int64{}}
	o.fill()
	p := run(t, s)
	kafkatest.Write(t, brokers, o.msgs...)
	o.transactions()
	predictions := o.rows - o.labels - o.duplicates - sum(o.rejected)
	st := p.drain(predictions, o.labels)
	// Dead letters are visible once a checkpoint has passed.
	p.wait(30*time.Second, "count every dead letter", func() bool {
		var err error
		st, err = p.status()
		return err == nil && sum(st.Counts.DeadLetters) >= sum(o.deadLetters)
	})
	p.stop()
	c := st.Counts
	if c.Predictions != predictions || c.Labels != o.labels || c.Joined != 4 || c.Duplicates != o.duplicates {
		t.Errorf("got %d predictions, %d labels, %d joined, %d duplicates; want %d, %d, 4, %d", c.Predictions, c.Labels,
			c.Joined, c.Duplicates, predictions, o.labels, o.duplicates)
	}
	if !maps.Equal(c.Rejected, o.rejected) {
		t.Errorf("rejected: got %v, want %v", c.Rejected, o.rejected)
	}
	if !maps.Equal(c.DeadLetters, o.deadLetters) {
		t.Errorf("dead letters: got %v, want %v", c.DeadLetters, o.deadLetters)
	}
	if got := len(kafkatest.ReadAll(t, brokers, s.topic("deadletter"))); int64(got) != sum(o.deadLetters) {
		t.Errorf("got %d records on the dead-letter topic, want %d", got, sum(o.deadLetters))
	}
	for _, snap := range latest(t, s) {
		if snap.Slice == "region=ghost" {
			t.Errorf("a slice of an aborted transaction has a snapshot: %+v", snap)
		}
	}
}

// transactions writes one that is committed, one that is aborted, and one more: neither the aborted rows nor the
// markers between them may be seen.
func (o *oddStream) transactions() {
	o.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(o.s.prefix),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		o.t.Fatal(err)
	}
	defer c.Close()
	ghost := func(c *arrowio.Columns) {
		c.Slices = []arrowio.StringColumn{{Name: "region", Values: []string{"ghost", "ghost"}}}
	}
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := c.BeginTransaction(); err != nil {
			o.t.Fatal(err)
		}
		edit := ghost
		if end == kgo.TryCommit {
			edit, o.rows = nil, o.rows+2
		}
		value := encodeOdd(o.t, fmt.Sprint("tx", i), 2, 10, edit)
		r := &kgo.Record{Topic: o.s.topic("logits"), Partition: 0, Value: value, Timestamp: start}
		if err := c.ProduceSync(o.t.Context(), r).FirstErr(); err != nil {
			o.t.Fatal(err)
		}
		if err := c.EndTransaction(o.t.Context(), end); err != nil {
			o.t.Fatal(err)
		}
	}
}
