package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/segmentio/kafka-go"
)

const classes = 10

var (
	id     = arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}
	ts     = arrow.Field{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_ns}
	logits = arrow.Field{Name: "logits", Type: arrow.FixedSizeListOf(classes, arrow.PrimitiveTypes.Float32)}
	label  = arrow.Field{Name: "label", Type: arrow.PrimitiveTypes.Int32}
	fields = map[string][]arrow.Field{
		"plumbline.logits": {id, ts, logits},
		"plumbline.labels": {id, ts, label},
	}
)

// encode makes an Arrow IPC stream of one record: the logits or the labels of ids.
func encode(topic string, ids []string) ([]byte, error) {
	meta := arrow.NewMetadata([]string{"plumbline.model", "plumbline.version"}, []string{"example", "1"})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields[topic], &meta))
	for _, id := range ids {
		b.Field(0).(*array.StringBuilder).Append(id)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(time.Now().UnixNano()))
		switch f := b.Field(2).(type) {
		case *array.FixedSizeListBuilder: // here your model's logits
			f.Append(true)
			for range classes {
				f.ValueBuilder().(*array.Float32Builder).Append(float32(3 * rand.NormFloat64()))
			}
		case *array.Int32Builder: // here the true class, when you know it
			f.Append(rand.Int32N(classes))
		}
	}
	record := b.NewRecord()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(record.Schema()))
	err := errors.Join(w.Write(record), w.Close())
	return buf.Bytes(), err
}

func main() {
	brokers := flag.String("brokers", "localhost:9092", "Kafka brokers, separated by commas")
	flag.Parse()
	// Rows go to the partition of their id, so that a prediction and its label meet: one message for each partition,
	// whose key is an id that belongs there.
	balancer := kafka.Murmur2Balancer{Consistent: true}
	split, all := map[int][]string{}, []int{0, 1, 2, 3} // the topics' partitions
	for range 1000 {
		id := fmt.Sprintf("example-%016x", rand.Uint64())
		p := balancer.Balance(kafka.Message{Key: []byte(id)}, all...)
		split[p] = append(split[p], id)
	}
	w := &kafka.Writer{Addr: kafka.TCP(strings.Split(*brokers, ",")...), Balancer: balancer,
		BatchTimeout: 10 * time.Millisecond}
	for _, topic := range []string{"plumbline.logits", "plumbline.labels"} {
		for _, ids := range split {
			value, err := encode(topic, ids)
			m := kafka.Message{Topic: topic, Key: []byte(ids[0]), Value: value}
			if err := errors.Join(err, w.WriteMessages(context.Background(), m)); err != nil {
				log.Fatalf("produce to %s: %v", topic, err)
			}
		}
	}
	log.Print("sent 1000 predictions of model example, version 1, and their labels")
}
