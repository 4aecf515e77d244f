//go:build integration

package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/realdata"
)

// inputSpan is the event time of a stream, whatever its number of rows: so the number of panes, and with it that of
// snapshots, does not grow with the rows.
const inputSpan = 2000 * time.Second

// labelDelay is the range of label delays: no label before its prediction, 12 panes open at a time.
const labelDelayMin, labelDelayMax = 10 * time.Second, 2 * time.Minute

// inputModel is one model of the input: sources played one after another.
type inputModel struct {
	name    string
	sources []*feed.Rows
}

// loadModels reads three models of real outputs, one of which becomes worse on its way. Where the data is absent the
// rows are generated, which the log says.
func loadModels(t *testing.T) []inputModel {
	t.Helper()
	sources := []struct{ model, file, array string }{
		{"drifting", "c10jpeg_resnet_logits.npz", "resnet20"}, {"drifting", "c10jpeg_resnet_logits.npz",
			"resnet20_gauss_noise_s1"},
		{"resnet20", "c10_chenyaofo19_logits.npz", "resnet20"}, {"resnet56", "c10_chenyaofo19_logits.npz", "resnet56"},
	}
	var models []inputModel
	for i, s := range sources {
		var rows *feed.Rows
		if _, ok := realdata.Find(s.file); ok {
			rows = loadRows(t, s.file, s.array, 10)
		} else {
			t.Logf("data set %s is absent: generated rows take its place", s.file)
			rows = generatedRows(10, int64(10000+i))
		}
		rows.Model, rows.Version = s.model, "1"
		device := feed.Column{Name: "device"}
		for r := range rows.N {
			device.Values = append(device.Values, "d"+strconv.Itoa(r%3))
		}
		rows.Slices = []feed.Column{device}
		if n := len(models); n > 0 && models[n-1].name == s.model {
			models[n-1].sources = append(models[n-1].sources, rows)
			continue
		}
		models = append(models, inputModel{s.model, []*feed.Rows{rows}})
	}
	return models
}

// generatedRows have labels drawn from their own probabilities, and scores twice as large as those say: a temperature
// of 2 mends them.
func generatedRows(k int, n int64) *feed.Rows {
	random, rows := rand.New(rand.NewPCG(uint64(n), uint64(k))), &feed.Rows{N: int(n), K: k}
	p := make([]float64, k)
	for range n {
		sum := 0.0
		for i := range p {
			z := 2 * random.NormFloat64()
			rows.Scores = append(rows.Scores, float32(2*z))
			p[i] = math.Exp(z)
			sum += p[i]
		}
		label, u := 0, sum*random.Float64()
		for ; label < k-1 && u >= p[label]; label++ {
			u -= p[label]
		}
		rows.Label = append(rows.Label, int32(label))
	}
	return rows
}

// input says how the rows of the models become a stream of messages. None of it may change a result.
type input struct {
	models     []inputModel
	rows       int64 // of all models together
	partitions int
	batch      int           // most rows of a message
	flush      time.Duration // event time that a row waits for its message to fill
	// mangle changes the order of the messages of one partition of one topic, or repeats some; nil leaves them alone.
	mangle func(stream feed.Stream, partition int32, m feed.Message) []feed.Message
}

// merged yields the messages of several feeds by time.
type merged struct {
	feeds []*feed.Feed
	heads []*feed.Message // nil: at its end
	last  int64
}

// perModel is the number of rows of each model.
func (in input) perModel() int64 { return in.rows / int64(len(in.models)) }

// total is the number of rows that are really sent.
func (in input) total() int64 { return in.perModel() * int64(len(in.models)) }

func (in input) open(t *testing.T) *merged {
	t.Helper()
	m := &merged{}
	n := in.perModel()
	for i, model := range in.models {
		var sources []feed.Source
		share := (n + int64(len(model.sources)) - 1) / int64(len(model.sources))
		for j, rows := range model.sources {
			src, err := rows.Open(feed.Order{Shuffle: true, Seed: uint64(10*i + j),
				Repeat: int((share + int64(rows.N) - 1) / int64(rows.N))})
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, &head{Source: src, left: share})
		}
		f, err := feed.NewSequence(sources, feed.Options{
			Partitions: in.partitions,
			EventRate:  float64(n) / inputSpan.Seconds(),
			Start:      start.UnixNano(),
			DelayMin:   labelDelayMin,
			DelayMax:   labelDelayMax,
			Batch:      in.batch,
			FlushEvery: in.flush,
			Seed:       uint64(i),
			Limit:      n,
			IDPrefix:   model.name,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.feeds = append(m.feeds, f)
		m.heads = append(m.heads, nil)
		if err := m.advance(i); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// head is the first rows of a source.
type head struct {
	feed.Source
	left int64
}

func (h *head) Next(row *feed.Row) error {
	if h.left == 0 {
		return io.EOF
	}
	h.left--
	return h.Source.Next(row)
}

func (m *merged) advance(i int) error {
	msg, err := m.feeds[i].Next()
	if errors.Is(err, io.EOF) {
		m.heads[i] = nil
		return nil
	}
	m.heads[i] = &msg
	return err
}

// next returns io.EOF after the last message.
func (m *merged) next() (feed.Message, error) {
	best := -1
	for i, h := range m.heads {
		if h != nil && (best < 0 || h.Time < m.heads[best].Time) {
			best = i
		}
	}
	if best < 0 {
		return feed.Message{}, io.EOF
	}
	msg := *m.heads[best]
	m.last = max(m.last, msg.Time)
	return msg, m.advance(best)
}

// closing are the watermark records after the last row.
func (m *merged) closing(partitions int) []feed.Message {
	const pane = int64(feed.DefaultPane)
	end := strconv.FormatInt((m.last/pane+1)*pane, 10)
	var out []feed.Message
	for _, s := range []feed.Stream{feed.Logits, feed.Labels} {
		for p := range partitions {
			out = append(out, feed.Message{Stream: s, Partition: int32(p), Value: []byte{}, Time: m.last,
				Headers: []feed.Header{{Key: feed.WatermarkHeader, Value: []byte(end)}}})
		}
	}
	return out
}

// producer sends an input, each message exactly once whatever happens to the brokers: the results could not be
// compared otherwise. So its client is another than the product's, an idempotent one.
type producer struct {
	rows atomic.Int64 // predictions handed to the client
	sent atomic.Int64 // messages acknowledged
	done chan struct{}
	err  error // after done
}

// produce sends the input evenly over a time, 0 as fast as the brokers take it.
func (d *deployment) produce(in input, over time.Duration) *producer {
	d.t.Helper()
	p, m := &producer{done: make(chan struct{})}, in.open(d.t)
	client, err := kgo.NewClient(kgo.SeedBrokers(d.cluster.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(2000),
		kgo.ProducerLinger(10*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MetadataMinAge(500*time.Millisecond))
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.t.Cleanup(func() { cancel(); <-p.done; client.Close() })
	go func() {
		defer close(p.done)
		p.err = p.run(ctx, client, d, in, m, over)
	}()
	return p
}

func (p *producer) run(ctx context.Context, client *kgo.Client, d *deployment, in input, m *merged,
	over time.Duration) error {
	var failed atomic.Pointer[error]
	// Records bear the time of sending: brokers forget a producer whose last record is older than a day when they read
	// their logs again, and then take what it repeats for new.
	send := func(msg feed.Message) {
		r := &kgo.Record{Topic: d.topic(msg.Stream.String()), Partition: msg.Partition, Key: msg.Key, Value: msg.Value,
			Timestamp: time.Now()}
		for _, h := range msg.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			p.sent.Add(1)
		})
	}
	begin := time.Now()
	for {
		msg, err := m.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		due := begin.Add(time.Duration(float64(over) * float64(p.rows.Load()) / float64(in.rows)))
		if !sleepUntil(ctx, due) || failed.Load() != nil {
			break
		}
		if msg.Stream == feed.Logits {
			p.rows.Add(int64(msg.Rows))
		}
		out := []feed.Message{msg}
		if in.mangle != nil {
			out = in.mangle(msg.Stream, msg.Partition, msg)
		}
		for _, msg := range out {
			send(msg)
		}
	}
	if in.mangle != nil {
		for _, c := range m.closing(in.partitions) { // an empty message asks for what was held back
			for _, msg := range in.mangle(c.Stream, c.Partition, feed.Message{Time: math.MaxInt64}) {
				send(msg)
			}
		}
	}
	for _, msg := range m.closing(in.partitions) {
		send(msg)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("produce: %w", *err)
	}
	return nil
}

func sleepUntil(ctx context.Context, due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(left):
		return true
	case <-ctx.Done():
		return false
	}
}

// wait returns when everything is acknowledged.
func (p *producer) wait(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-p.done:
		if p.err != nil {
			t.Fatal(p.err)
		}
	case <-time.After(limit):
		t.Fatalf("the input was not acknowledged within %v: %d rows handed over, %d messages acknowledged", limit,
			p.rows.Load(), p.sent.Load())
	}
}

// byTime sorts messages as they would have been sent.
func byTime(ms []feed.Message) {
	slices.SortStableFunc(ms, func(a, b feed.Message) int { return cmp.Compare(a.Time, b.Time) })
}
