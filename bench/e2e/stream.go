package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
)

// stream is the topics of a cell.
type stream struct {
	cell
	prefix string
	bytes  int64 // of message values
	count  map[string]int64
}

func (s *stream) topic(name string) string { return s.prefix + "." + name }

// topics are those that have messages.
func (s *stream) topics() []string {
	if s.Inline {
		return []string{s.topic("logits")}
	}
	return []string{s.topic("logits"), s.topic("labels")}
}

const partitions = 4

// appendTime has records dated by the broker when it appends them, instead of by their sender, which may be late.
var appendTime = kafka.ConfigEntry{ConfigName: "message.timestamp.type", ConfigValue: "LogAppendTime"}

// newStream makes the topics of a cell.
func newStream(ctx context.Context, broker string, c cell, settings ...kafka.ConfigEntry) (*stream, error) {
	s := &stream{cell: c, prefix: fmt.Sprintf("e2e-%s-%08x", c.name(), rand.Uint32()), count: map[string]int64{}}
	client := &kafka.Client{Addr: kafka.TCP(broker), Timeout: time.Minute}
	var configs []kafka.TopicConfig
	for _, name := range []string{"logits", "labels"} {
		configs = append(configs, kafka.TopicConfig{Topic: s.topic(name), NumPartitions: partitions,
			ReplicationFactor: 1, ConfigEntries: settings})
	}
	made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: configs})
	if err == nil {
		for _, e := range made.Errors {
			err = errors.Join(err, e)
		}
	}
	return s, err
}

func newWriter(broker string) *kafka.Writer {
	return &kafka.Writer{Addr: kafka.TCP(broker), Balancer: partition{}, BatchBytes: 16 << 20, BatchSize: 1000,
		BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireOne}
}

// produce makes the topics of a cell and fills them, with so many rows a second of event time.
func produce(ctx context.Context, broker string, c cell, rate int) (*stream, error) {
	s, err := newStream(ctx, broker, c)
	if err == nil && c.JSON {
		return s, s.produceJSON(ctx, broker, rate)
	}
	if err != nil {
		return nil, err
	}
	f, err := feed.New(newRows(c), feed.Options{
		Partitions:   partitions,
		EventRate:    float64(rate),
		Start:        time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano(),
		DelayMax:     2 * time.Second,
		InlineLabels: c.Inline,
		Batch:        c.Batch,
		FlushEvery:   10 * time.Second,
		Seed:         1,
		End:          true,
	})
	if err != nil {
		return nil, err
	}
	w := newWriter(broker)
	defer w.Close()
	for end := false; !end; {
		var some []kafka.Message
		if some, end, err = s.next(f); err == nil {
			err = w.WriteMessages(ctx, some...)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// produceJSON fills the topics with few rows a record; a label comes two seconds after its prediction.
func (s *stream) produceJSON(ctx context.Context, broker string, rate int) error {
	w := newWriter(broker)
	defer w.Close()
	w.Compression = kafka.Lz4
	if s.Sent > 0 {
		w.BatchSize = s.Sent
	}
	at := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	var some []kafka.Message
	sent := 0
	add := func(m kafka.Message, partition int) {
		m.WriterData = partition
		s.bytes += int64(len(m.Value))
		s.count[m.Topic]++
		some = append(some, m)
	}
	send := func(topic string, at time.Time, rows [][]byte) {
		value := rows[0]
		if len(rows) > 1 {
			value = slices.Concat([]byte{'['}, bytes.Join(rows, []byte{','}), []byte{']'})
		}
		add(kafka.Message{Topic: topic, Time: at, Value: value}, sent%partitions)
		sent++
	}
	type known struct {
		at    time.Time
		label []byte
	}
	source := newRows(s.cell)
	var rows, labels [][]byte
	var waiting []known
	for i := range s.Rows {
		var row feed.Row
		if err := source.Next(&row); err != nil {
			return err
		}
		value := fmt.Appendf(nil, `{"id":%q,"ts":%d,"model":"m","version":"1","logits":[`, row.ID, at.UnixMicro())
		for j, z := range row.Scores {
			if j > 0 {
				value = append(value, ',')
			}
			value = strconv.AppendFloat(value, float64(z), 'g', 6, 32)
		}
		last := i == s.Rows-1
		if rows = append(rows, append(value, "]}"...)); len(rows) == s.Batch || last {
			send(s.topic("logits"), at, rows)
			rows = rows[:0]
		}
		then := at.Add(2 * time.Second)
		waiting = append(waiting, known{then, fmt.Appendf(nil, `{"id":%q,"ts":%d,"label":%d}`, row.ID, then.UnixMicro(),
			row.Label)})
		at = at.Add(time.Second / time.Duration(rate))
		for len(waiting) > 0 && (last || waiting[0].at.Before(at)) {
			labels = append(labels, waiting[0].label)
			then, waiting = waiting[0].at, waiting[1:]
			if len(labels) == s.Batch || last && len(waiting) == 0 {
				send(s.topic("labels"), then, labels)
				labels = labels[:0]
			}
		}
		if len(some) > 20_000 || last {
			if err := w.WriteMessages(ctx, some...); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	end := kafka.Header{Key: feed.WatermarkHeader, Value: strconv.AppendInt(nil, at.Add(time.Hour).UnixNano(), 10)}
	for _, topic := range s.topics() {
		for p := range partitions {
			add(kafka.Message{Topic: topic, Time: at, Value: []byte{}, Headers: []kafka.Header{end}}, p)
		}
	}
	return w.WriteMessages(ctx, some...)
}

// next takes some messages of a feed.
func (s *stream) next(f *feed.Feed) (some []kafka.Message, end bool, err error) {
	const atOnce = 8 << 20
	for size := 0; size < atOnce; {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return some, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		some, size = append(some, s.message(&m)), size+len(m.Value)
	}
	return some, false, nil
}

// message is that of a feed for the broker, counted.
func (s *stream) message(m *feed.Message) kafka.Message {
	k := kafka.Message{Topic: s.topic(m.Stream.String()), Key: m.Key, Value: m.Value, Time: time.Unix(0, m.Time),
		WriterData: int(m.Partition)}
	for _, h := range m.Headers {
		k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	s.bytes += int64(len(m.Value))
	s.count[k.Topic]++
	return k
}

// partition sends a message where the feed says.
type partition struct{}

// Balance implements kafka.Balancer.
func (partition) Balance(m kafka.Message, _ ...int) int { return m.WriterData.(int) }

// remove deletes the topics.
func (s *stream) remove(ctx context.Context, broker string) error {
	client := &kafka.Client{Addr: kafka.TCP(broker), Timeout: time.Minute}
	topics := []string{s.topic("logits"), s.topic("labels")}
	_, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: topics})
	return err
}

// rows yields rows of seeded logits, correct about as often as they are confident.
type rows struct {
	cell
	left   int64
	random *rand.Rand
	pool   []float32 // rows are windows into it
	value  [1]string
}

func newRows(c cell) *rows {
	s := &rows{cell: c, left: c.Rows, random: rand.New(rand.NewPCG(1, uint64(c.K))), pool: make([]float32, 1<<20)}
	for i := range s.pool {
		s.pool[i] = float32(2 * s.random.NormFloat64())
	}
	return s
}

// tenant is the slice column.
const tenant = "tenant"

func sliceColumns(keys int) []string {
	if keys > 1 {
		return []string{tenant}
	}
	return nil
}

func tenantName(i int) string { return "t" + strconv.Itoa(i) }

// Schema implements feed.Source.
func (s *rows) Schema() feed.Fields {
	return feed.Fields{Model: "m", Version: "1", K: s.K, Slices: sliceColumns(s.Keys)}
}

// Next implements feed.Source.
func (s *rows) Next(row *feed.Row) error {
	if s.left == 0 {
		return io.EOF
	}
	s.left--
	from := s.random.IntN(len(s.pool) - s.K)
	// Ids of 16 bytes.
	*row = feed.Row{Scores: s.pool[from : from+s.K], Label: int32(s.random.IntN(s.K)), Weight: 1}
	id := strconv.FormatInt(s.left, 36)
	row.ID = strings.Repeat("0", 16-len(id)) + id
	if s.Keys > 1 {
		s.value[0] = tenantName(s.random.IntN(s.Keys))
		row.Slices = s.value[:]
	}
	if s.random.IntN(3) > 0 {
		for i, z := range row.Scores {
			if z > row.Scores[row.Label] {
				row.Label = int32(i)
			}
		}
	}
	return nil
}
