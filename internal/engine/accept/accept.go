// Package accept takes the rows that come over HTTP (web/ingest) to the topics that producers write to, under the keys
// that their readers want: by id where shards read them, else to any partition.
package accept

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/web/ingest"
)

// writer writes rows that came over HTTP to the topics that producers write to.
type writer struct {
	book *scale.Book
	sink *kafkaio.Sink
	// splits: the topics are read by id, so rows have to be sent by it.
	splits  [2]bool
	mu      sync.Mutex // of split
	split   *arrowio.Splitter
	rounder atomic.Int32
}

// New returns what takes rows over HTTP; nil where that is not configured.
func New(ctx context.Context, c *config.Config, client *kafka.Client, book *scale.Book) (http.Handler, error) {
	if !c.HTTP.Ingest {
		return nil, nil
	}
	t := &c.Topics
	to := map[pipeline.Stream]string{pipeline.StreamLogits: cmp.Or(t.LogitsUnkeyed, t.Logits)}
	if t.Labels != "" {
		to[pipeline.StreamLabels] = cmp.Or(t.LabelsUnkeyed, t.Labels)
	}
	sink, err := kafkaio.NewSink(ctx, client, to, c.Kafka.MessageMax, book.Log)
	if err != nil {
		return nil, err
	}
	w := &writer{book: book, sink: sink, splits: [2]bool{t.LogitsUnkeyed == "", t.LabelsUnkeyed == ""},
		split: arrowio.NewSplitter(arrowio.Options{Slices: c.Slices.Columns, MaxMessageBytes: c.Kafka.MessageMax})}
	return ingest.New(w, ingest.Options{Slices: c.Slices.Columns, MaxBody: c.Kafka.MessageMax,
		NoLabels: t.Labels == "", Log: book.Log}), nil
}

// Put implements ingest.Writer.
func (w *writer) Put(ctx context.Context, kind arrowio.Kind, messages [][]byte) error {
	plan, _ := w.book.Now()
	stream, byID := pipeline.StreamLogits, w.splits[0] && !plan.Split
	if kind == arrowio.Labels {
		stream, byID = pipeline.StreamLabels, w.splits[1] && !plan.Split
	}
	now := time.Now().UnixNano()
	var out []pipeline.Message
	for _, m := range messages {
		if !byID {
			out = append(out, pipeline.Message{Stream: stream, Partition: w.rounder.Add(1) & (1<<30 - 1), Value: m,
				Time: now})
			continue
		}
		parts, err := w.parts(m, kind, plan.Of)
		if err != nil {
			return err
		}
		for _, p := range parts {
			out = append(out, pipeline.Message{Stream: stream, Partition: int32(p.Place), Value: p.Value, Time: now})
		}
	}
	if place, ok := tracing.CarrierOf(ctx); ok {
		for i := range out {
			out[i].Headers = pipeline.TraceHeaders(place)
		}
	}
	return w.sink.Write(ctx, out)
}

// parts splits a message by id, as producers of keyed topics do.
func (w *writer) parts(m []byte, kind arrowio.Kind, of int) ([]arrowio.Part, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.split.Split(m, arrowio.Origin{}, kind, of, func(id []byte) int { return pipeline.PartitionOf(id, of) })
}
