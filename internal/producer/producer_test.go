package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestProduceKeepsPartitionsAndOrder reads every partition back and compares it with the feed's own sequence.
func TestProduceKeepsPartitionsAndOrder(t *testing.T) {
	const rows, partitions = 2000, 3
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, partitions, "plumbline.logits", "plumbline.labels")
	topics := config.Default().Topics
	s, err := Send(t.Context(), testClient(brokers), testFeed(t, rows, partitions),
		Options{Logits: topics.Logits, Labels: topics.Labels})
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows != rows || s.Labels != rows {
		t.Errorf("got %d rows and %d labels, want %d of both", s.Rows, s.Labels, rows)
	}
	want := map[string][]feed.Message{}
	for f := testFeed(t, rows, partitions); ; {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lane := fmt.Sprintf("plumbline.%s/%d", m.Stream, m.Partition)
		want[lane] = append(want[lane], m)
	}
	got := map[string][]kafka.Message{}
	for _, topic := range []string{topics.Logits, topics.Labels} {
		for _, m := range kafkatest.ReadAll(t, brokers, topic) {
			lane := fmt.Sprintf("%s/%d", topic, m.Partition)
			got[lane] = append(got[lane], m)
		}
	}
	if len(want) != 2*partitions {
		t.Fatalf("the feed has %d lanes, want %d", len(want), 2*partitions)
	}
	for lane, messages := range want {
		compareLane(t, lane, got[lane], messages)
	}
}

func TestProduceReportsTheTopicThatFails(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "plumbline.logits", "plumbline.labels")
	// The feed believes in 2 partitions, the topic has 1. An unknown partition may appear, so it is tried for a while.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Send(ctx, testClient(brokers), testFeed(t, 100, 2), Options{Logits: config.Default().Topics.Logits,
		Labels: config.Default().Topics.Labels})
	if err == nil || !strings.Contains(err.Error(), "/1: ") {
		t.Errorf("got %v, want an error that names partition 1", err)
	}
}

// leaderless answers the first produce requests as kafka-go's transport does while a partition has no leader.
type leaderless struct {
	kafka.RoundTripper
	left atomic.Int64
}

func (l *leaderless) RoundTrip(ctx context.Context, a net.Addr, r kafka.Request) (kafka.Response, error) {
	if r.ApiKey() == protocol.Produce && l.left.Add(-1) >= 0 {
		return nil, protocol.NewErrNoLeader("plumbline.logits", 0)
	}
	return l.RoundTripper.RoundTrip(ctx, a, r)
}

func TestProduceWaitsForALeader(t *testing.T) {
	const rows = 100
	brokers := kafkatest.Start(t)
	topics := config.Default().Topics
	kafkatest.CreateTopics(t, brokers, 1, topics.Logits, topics.Labels)
	client := testClient(brokers)
	transport := &leaderless{RoundTripper: client.Transport}
	transport.left.Store(3)
	client.Transport = transport
	s, err := Send(t.Context(), client, testFeed(t, rows, 1), Options{Logits: topics.Logits, Labels: topics.Labels})
	if err != nil || s.Rows != rows || s.Labels != rows || transport.left.Load() >= 0 {
		t.Errorf("got %+v, %v with %d refusals left, want %d rows and labels", s, err, transport.left.Load(), rows)
	}
}

func TestGatherKeepsOrderAndSize(t *testing.T) {
	queue := make(chan message, 8)
	for i := range 5 {
		queue <- message{Key: []byte{byte(i)}, Value: make([]byte, requestBytes/3)}
	}
	close(queue)
	var sizes []int
	next := byte(0)
	for r, ok := <-queue; ok; {
		held := []message{r}
		for held != nil {
			var batch []message
			batch, held = gather(held, queue)
			sizes = append(sizes, len(batch))
			for _, b := range batch {
				if b.Key[0] != next {
					t.Errorf("got record %d, want %d", b.Key[0], next)
				}
				next++
			}
		}
		r, ok = <-queue
	}
	if fmt.Sprint(sizes) != "[2 2 1]" {
		t.Errorf("got requests of %v records, want [2 2 1]", sizes)
	}
}

func TestPaceSpreadsRows(t *testing.T) {
	start := time.Now()
	p := pace{start, 1000}
	if err := p.wait(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("row 50 at 1000 rows/s was due after %v, want 50 ms or more", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.wait(ctx, 1e9); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

// testFeed is a stream of n rows of 10 classes with labels up to 5 s late, the same at every call.
func testFeed(t *testing.T, n, partitions int) *feed.Feed { return skippingFeed(t, n, partitions, 0) }

func skippingFeed(t *testing.T, n, partitions int, skip int64) *feed.Feed {
	t.Helper()
	rows := &feed.Rows{Model: "m", N: n, K: 10, Scores: make([]float32, 10*n), Label: make([]int32, n)}
	for i := range rows.Scores {
		rows.Scores[i] = float32(i%37) / 7
	}
	for i := range rows.Label {
		rows.Label[i] = int32(i % 10)
	}
	src, err := rows.Open(feed.Order{Shuffle: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{
		Partitions: partitions, EventRate: 100, Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano(),
		DelayMax: 5 * time.Second, Batch: 16, End: true, Skip: skip, Pane: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func testClient(brokers []string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
}

func compareLane(t *testing.T, lane string, got []kafka.Message, want []feed.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d messages, want %d", lane, len(got), len(want))
		return
	}
	for i, w := range want {
		g := got[i]
		sameHeaders := len(g.Headers) == len(w.Headers)
		for j := range w.Headers {
			sameHeaders = sameHeaders && g.Headers[j].Key == w.Headers[j].Key &&
				bytes.Equal(g.Headers[j].Value, w.Headers[j].Value)
		}
		if !bytes.Equal(g.Key, w.Key) || !bytes.Equal(g.Value, w.Value) || !sameHeaders ||
			g.Time.UnixMilli() != w.Time/1e6 {
			t.Errorf("%s, message %d: key %q, %d bytes, headers %v at %v, want key %q, %d bytes, headers %v at %v",
				lane, i, g.Key, len(g.Value), g.Headers, g.Time.UTC(), w.Key, len(w.Value), w.Headers,
				time.Unix(0, w.Time).UTC())
			return
		}
	}
}
