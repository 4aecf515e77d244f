//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

func init() {
	for name, l := range map[string]lettersAttack{
		"million-rows": {
			input:  "3 MB with 1,048,576 rejected rows",
			before: "the task ended for ever: its dead letter's list of rows had 7 MB",
			send:   sendMillionRows,
			most:   70 << 10,
		},
		"inflated": {
			input:  "160,000 × 10 floats of 9.6 MB, compressed by Kafka to less than the limit",
			before: "the task ended for ever: the dead letter did not fit uncompressed",
			send:   sendInflated,
			most:   70 << 10,
		},
		"headers": {
			input:  "400 garbage values with headers of 40 KB",
			before: "the task ended for ever: headers were not counted",
			send:   sendHeaders,
			most:   400 * 6 << 10,
		},
		"one-row-batches": {
			input:  "1.5 MB of 1,000 batches of one rejected row",
			before: "1.46 GB of dead letters",
			send:   func(t *testing.T, s settings) int64 { return sendBatches(t, s, 1000, 317) },
			most:   70 << 10,
		},
		"4096-batches": {
			input:  "6.9 MB of 4,096 batches of one rejected row",
			before: "killed a process with 6 GB",
			send:   func(t *testing.T, s settings) int64 { return sendBatches(t, s, 4096, 363) },
			most:   70 << 10,
		},
		"labels-from-1": {
			input:  "259 KB of labels counted from 1, without a model",
			before: "266 MB of dead letters",
			send:   sendLabelsFromOne,
			most:   70 << 10,
		},
		"calibrated": {
			input:  "6 MB of float16 logits; the calibrated stream has float32",
			before: "the task ended for ever: the calibrated message did not fit",
			send:   sendHalf,
			config: "calibrated: {enabled: true}\n",
		},
		"refused": {
			input:  "garbage, where the dead-letter topic takes 200 bytes",
			before: "the task ended for ever",
			send:   sendRefused,
			most:   0,
		},
		"flood": {
			input:  "200,000 garbage values of 10 bytes",
			before: "200,000 dead letters of 43 MB",
			send:   sendFlood,
			most:   2 * partitions * 11 << 20, // two minutes at most
		},
	} {
		hostile["letters-"+name] = func(t *testing.T, a *attack) { l.run(t, a) }
	}
}

// lettersAttack is what is sent between the two halves of a good model's stream.
type lettersAttack struct {
	input, before string
	config        string
	send          func(t *testing.T, s settings) (messages int64) // that become dead letters
	most          int64                                           // bytes of dead letters
}

func (l lettersAttack) run(t *testing.T, a *attack) {
	a.Input, a.Before = l.input, l.before
	want := goodHash(t)
	s := configure(t, oneDay+l.config)
	p := run(t, s)
	good := goodStream(t, s)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	letters := l.send(t, s)
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	var counts struct{ skipped, refused, all int64 }
	p.wait(2*time.Minute, "get behind the attack", func() bool {
		st, err := p.status()
		counts.all, counts.skipped, counts.refused = sum(st.Counts.DeadLetters), sum(st.Counts.Skipped),
			sum(st.Counts.Refused)
		return err == nil && st.Drained && st.Counts.Joined >= goodRows && counts.all >= letters
	})
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	if a.RSS, a.Restart = p.peak(), p.restarts(); a.Restart > 0 {
		t.Errorf("tasks ended %d times", a.Restart)
	}
	p.stop()
	n := int64(0)
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		if string(m.Key) == probe {
			continue
		}
		a.Letters += letterBytes(t, &m)
		n++
	}
	if counts.all != letters || n+counts.skipped+counts.refused != letters {
		t.Errorf("%d dead letters, of them %d skipped and %d refused; %d in the topic; want %d", counts.all,
			counts.skipped, counts.refused, n, letters)
	}
	if a.Letters > l.most {
		t.Errorf("%d bytes of dead letters, want at most %d", a.Letters, l.most)
	}
	if l.config != "" {
		checkCalibrated(t, s, goodRows+280_000)
	}
	a.Note = fmt.Sprintf("%d of %d letters written", n, letters)
}

// letterBytes are those of a dead letter, none of which is large.
func letterBytes(t *testing.T, m *kafka.Message) int64 {
	n := len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	if n > 80<<10 {
		t.Errorf("a dead letter of %d bytes", n)
	}
	return int64(n)
}

// peak is the most resident memory that the process had, in bytes.
func (p *process) peak() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		p.t.Fatalf("no VmHWM in %s", text)
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// restarts is how often a task of the process ended with an error.
func (p *process) restarts() int {
	text, _ := os.ReadFile(p.log)
	return strings.Count(string(text), "worker ended") + strings.Count(string(text), "task failed")
}

func checkCalibrated(t *testing.T, s settings, want int64) {
	t.Helper()
	rows := int64(0)
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("calibrated")) {
		r, err := ipc.NewReader(bytes.NewReader(m.Value))
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			rows += r.Record().NumRows()
		}
		r.Release()
	}
	if rows != want {
		t.Errorf("the calibrated stream has %d rows, want %d", rows, want)
	}
}

// lettersModel is the metadata of messages of a model that does nobody any good.
var lettersModel = arrow.NewMetadata([]string{arrowio.MetaModel, arrowio.MetaVersion}, []string{"bad", "1"})

// halfLogits encodes n rows of k float16 logits with a label of one byte each.
func halfLogits(t *testing.T, n, k int, label int8) []byte {
	t.Helper()
	scores := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(k), arrow.FixedWidthTypes.Float16)
	labels := array.NewInt8Builder(memory.DefaultAllocator)
	values := scores.ValueBuilder().(*array.Float16Builder)
	for i := range n {
		scores.Append(true)
		for j := range k {
			values.Append(float16.New(float32((i + j) % 3)))
		}
		labels.Append(label)
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "logits", Type: arrow.FixedSizeListOf(int32(k), arrow.FixedWidthTypes.Float16), Nullable: true},
		{Name: "label", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	}, &lettersModel)
	return encodeRecords(t, schema, []arrow.Array{scores.NewArray(), labels.NewArray()}, int64(n), 1)
}

// encodeRecords writes the same record batch so many times.
func encodeRecords(t *testing.T, schema *arrow.Schema, columns []arrow.Array, rows int64, times int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	rec := array.NewRecord(schema, columns, rows)
	for range times {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func (s settings) attackWith(t *testing.T, topic string, values ...[]byte) {
	t.Helper()
	msgs := make([]kafka.Message, len(values))
	for i, v := range values {
		msgs[i] = kafka.Message{Topic: s.topic(topic), Partition: i % partitions, Value: v, Time: start}
	}
	kafkatest.Write(t, brokers, msgs...)
}

func sendMillionRows(t *testing.T, s settings) int64 {
	const n = 1 << 20
	scores, labels := array.NewFloat16Builder(memory.DefaultAllocator), array.NewInt8Builder(memory.DefaultAllocator)
	for range n {
		scores.Append(float16.New(1))
		labels.Append(5) // of two classes
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "logit", Type: arrow.FixedWidthTypes.Float16, Nullable: true},
		{Name: "label", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	}, &lettersModel)
	value := encodeRecords(t, schema, []arrow.Array{scores.NewArray(), labels.NewArray()}, n, 1)
	t.Logf("%d bytes", len(value))
	s.attackWith(t, "logits", value)
	return 1
}

func sendInflated(t *testing.T, s settings) int64 {
	value := encodeOdd(t, "inflated", 160_000, 10, nil)
	t.Logf("%d bytes before compression", len(value))
	s.sendLarge(t, "logits", value)
	return 1
}

// sendLarge sends a message that fits when it is compressed.
func (s settings) sendLarge(t *testing.T, topic string, value []byte) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(64<<20),
		kgo.BrokerMaxWriteBytes(100<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = c.ProduceSync(ctx, &kgo.Record{Topic: s.topic(topic), Value: value, Timestamp: start}).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
}

func sendHeaders(t *testing.T, s settings) int64 {
	const n = 400
	header := bytes.Repeat([]byte("h"), 40<<10)
	for chunk := range n / 20 {
		var msgs []kafka.Message
		for i := range 20 {
			msgs = append(msgs, kafka.Message{Topic: s.topic("logits"), Partition: 1,
				Value: fmt.Appendf(nil, "garbage %d %d", chunk, i), Time: start,
				Headers: []kafka.Header{{Key: "a", Value: header}}})
		}
		kafkatest.Write(t, brokers, msgs...)
	}
	return n
}

func sendBatches(t *testing.T, s settings, batches, k int) int64 {
	scores := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(k), arrow.PrimitiveTypes.Float32)
	labels := array.NewInt32Builder(memory.DefaultAllocator)
	scores.Append(true)
	for range k {
		scores.ValueBuilder().(*array.Float32Builder).Append(float32(math.NaN()))
	}
	labels.Append(0)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "logits", Type: arrow.FixedSizeListOf(int32(k), arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "label", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	}, &lettersModel)
	value := encodeRecords(t, schema, []arrow.Array{scores.NewArray(), labels.NewArray()}, 1, batches)
	t.Logf("%d bytes", len(value))
	s.sendLarge(t, "logits", value)
	return 1
}

func sendLabelsFromOne(t *testing.T, s settings) int64 {
	const n = 10_830
	c := arrowio.Columns{Model: "ones", Version: "1", K: 10, Logits: make([]float32, n*10)}
	labels := make([]int32, n)
	for i := range n {
		c.IDs, c.TS = append(c.IDs, fmt.Sprintf("one-%d", i)), append(c.TS, start.UnixNano())
		labels[i] = int32(i%10) + 1
	}
	value, err := arrowio.EncodePredictions(c)
	if err != nil {
		t.Fatal(err)
	}
	s.attackWith(t, "logits", value)
	if value, err = arrowio.EncodeLabels("", "", c.IDs, c.TS, labels); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of labels", len(value))
	s.attackWith(t, "labels", value)
	return 1
}

func sendHalf(t *testing.T, s settings) int64 {
	value := halfLogits(t, 280_000, 10, 1)
	t.Logf("%d bytes", len(value))
	s.attackWith(t, "logits", value)
	return 0
}

func sendRefused(t *testing.T, s settings) int64 {
	limitMessages(t, s.topic("deadletter"), 200)
	var values [][]byte
	for i := range 100 {
		values = append(values, bytes.Repeat([]byte{'x'}, 100+i))
	}
	s.attackWith(t, "logits", values...)
	return int64(len(values))
}

func sendFlood(t *testing.T, s settings) int64 {
	const n, at = 200_000, 20_000
	values := make([][]byte, at)
	for i := range n / at {
		for j := range values {
			values[j] = fmt.Appendf(nil, "x%09d", i*at+j)
		}
		s.attackWith(t, "logits", values...)
	}
	return n
}

// probe is the key of messages that ask whether a limit holds.
const probe = "probe"

// limitMessages sets the largest message that a topic takes, and waits until each partition refuses larger ones: a
// broker answers before its logs know of it.
func limitMessages(t *testing.T, topic string, bytes int) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	res, err := client.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic,
			ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "max.message.bytes", Value: strconv.Itoa(bytes), ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	if err == nil {
		for _, r := range res.Resources {
			err = r.Error
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for partition := range partitions {
		within(t, time.Minute, fmt.Sprintf("refuse messages of %d bytes on %s/%d", bytes+1, topic, partition),
			func() error { return refused(t, topic, partition, bytes+1) })
	}
}

// refused is nil where the partition refuses a value of n bytes for its size.
func refused(t *testing.T, topic string, partition, n int) error {
	records := kafka.NewRecordReader(kafka.Record{
		Key: kafka.NewBytes([]byte(probe)), Value: kafka.NewBytes(make([]byte, n)),
	})
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	res, err := client.Produce(t.Context(), &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: records,
	})
	switch {
	case err != nil && !errors.Is(err, kafka.MessageSizeTooLarge):
		return err
	case err == nil && !errors.Is(res.Error, kafka.MessageSizeTooLarge):
		return errors.New("the answer is " + fmt.Sprint(res.Error))
	}
	return nil
}
