// Package accept takes the rows that come over HTTP (web/ingest) to the topics that producers write to, under the keys
// that their readers want: by id where shards read them, else to any partition.
package accept

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/web/ingest"
)

// writer writes rows that came over HTTP to the topics that producers write to.
type writer struct {
	book    *scale.Book
	sink    *kafkaio.Sink
	mu      sync.Mutex // of split
	split   *arrowio.Splitter
	rounder atomic.Int32
}

// New returns what takes rows over HTTP; nil where that is not configured. The rules are those of the shards.
func New(ctx context.Context, c *config.Config, client *kafka.Client, book *scale.Book, rules *validate.Config,
) (http.Handler, error) {
	if !c.HTTP.Ingest {
		return nil, nil
	}
	t := &c.Topics
	to := map[pipeline.Stream]string{pipeline.StreamLogits: t.Logits}
	if t.Labels != "" {
		to[pipeline.StreamLabels] = t.Labels
	}
	sink, err := kafkaio.NewSink(ctx, client, to, c.Kafka.MessageMax, book.Log)
	if err != nil {
		return nil, err
	}
	w := &writer{book: book, sink: sink,
		split: arrowio.NewSplitter(arrowio.Options{Slices: c.Slices.Columns, MaxMessageBytes: c.Kafka.MessageMax})}
	return ingest.New(w, ingest.Options{Slices: c.Slices.Columns, MaxBody: c.Kafka.MessageMax,
		NoLabels: t.Labels == "", Log: book.Log,
		Refused: func(b *arrowio.Batch, see func(row int, reason, detail string)) {
			validate.Refused(*rules, b, see)
		}}), nil
}

// Put implements ingest.Writer.
func (w *writer) Put(ctx context.Context, kind arrowio.Kind, messages [][]byte) error {
	plan, _ := w.book.Now()
	stream := pipeline.StreamLogits
	if kind == arrowio.Labels {
		stream = pipeline.StreamLabels
	}
	now := time.Now().UnixNano()
	var out []pipeline.Message
	for _, m := range messages {
		if plan.Split {
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
	return w.split.Split(m, arrowio.Origin{}, kind, of, func(id []byte) int { return murmur.PartitionOf(id, of) })
}
