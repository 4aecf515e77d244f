package kafkaio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

func record(topic string, partition int, value string) kafka.Message {
	return kafka.Message{Topic: topic, Partition: partition, Value: []byte(value)}
}

func tailSpec(t *testing.T, brokers []string, log io.Writer) kafkaio.TailSpec {
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return kafkaio.TailSpec{Client: &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}, MaxBytes: 1 << 20,
		Log: slog.New(slog.NewTextHandler(log, nil))}
}

// TestTail reads two topics of two partitions from their start and for ever; a record that cannot be used is logged
// with its place.
func TestTail(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "a", "b")
	kafkatest.Write(t, brokers, record("a", 0, "a0"), record("a", 1, "a1"), record("b", 1, "bad"), record("b", 1, "b1"))
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	var log bytes.Buffer
	taken, end := make(chan string, 10), make(chan int, 2)
	take := func(r *pipeline.Record) error {
		if string(r.Value) == "bad" {
			return errors.New("unusable")
		}
		taken <- string(r.Value)
		return nil
	}
	topics := []kafkaio.Tailed{{Topic: "a", Take: take}, {Topic: "b", Take: take}, {Topic: "", Take: nil}}
	if err := kafkaio.Tail(ctx, g, tailSpec(t, brokers, &log), topics, func() { end <- len(taken) }); err != nil {
		t.Fatal(err)
	}
	if n := <-end; n != 3 {
		t.Errorf("caught up after %d records, want 3", n)
	}
	kafkatest.Write(t, brokers, record("b", 0, "later"))
	got := map[string]bool{}
	for range 4 {
		got[<-taken] = true
	}
	if !got["a0"] || !got["a1"] || !got["b1"] || !got["later"] {
		t.Errorf("taken: %v", got)
	}
	cancel()
	if err := g.Wait(); err != nil || len(end) != 0 {
		t.Errorf("ended with %v, caught up %d times more", err, len(end))
	}
	if text := log.String(); !strings.Contains(text, "topic=b partition=1 offset=0 err=unusable") ||
		strings.Count(text, "\n") != 1 {
		t.Errorf("log: %s", text)
	}
	if err := kafkaio.Tail(t.Context(), g, tailSpec(t, brokers, io.Discard), []kafkaio.Tailed{{Topic: "none"}},
		nil); err == nil {
		t.Error("a topic that is not there is tailed")
	}
}

// TestLog reads a range, then to the end and beyond.
func TestLog(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "a")
	kafkatest.Write(t, brokers, record("a", 0, "0"), record("a", 0, "1"), record("a", 0, "2"))
	spec := tailSpec(t, brokers, io.Discard)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next := func(l *kafkaio.Log) string {
		r, err := l.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return "end"
		case err != nil:
			t.Fatal(err)
		case r.Idle:
			return "idle"
		}
		return string(r.Value)
	}
	part := kafkaio.NewLog(spec, "a", 0, kafkaio.Range{Next: 1, Until: 2})
	defer part.Close()
	if got := next(part) + " " + next(part); got != "1 end" {
		t.Errorf("the range has %s", got)
	}
	whole := kafkaio.NewLog(spec, "a", 0, kafkaio.Range{Next: 2})
	defer whole.Close()
	if got := next(whole) + " " + next(whole); got != "2 idle" {
		t.Errorf("from 2 on: %s", got)
	}
	if n, ok := whole.Behind(1); n != 2 || !ok {
		t.Errorf("behind by %d, %v; want 2 of a reader at offset 1", n, ok)
	}
	kafkatest.Write(t, brokers, record("a", 0, "3"))
	if got := next(whole) + " " + next(whole); got != "3 idle" {
		t.Errorf("then: %s", got)
	}
	var all []string
	if err := kafkaio.ReadTopic(ctx, spec, "a",
		func(r *pipeline.Record) { all = append(all, string(r.Value)) }); err != nil ||
		strings.Join(all, "") != "0123" {
		t.Errorf("the topic has %v, %v", all, err)
	}
}

// TestTailOfTopicsThatChange: a process that follows a topic reads the partitions that are added to it, and all of a
// topic that was deleted and made again, be it longer than it was or empty.
func TestTailOfTopicsThatChange(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "a")
	kafkatest.Write(t, brokers, record("a", 0, "0"))
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	spec := tailSpec(t, brokers, io.Discard)
	spec.Every = 10 * time.Millisecond
	spec.Client.Transport.(*kafka.Transport).MetadataTTL = 10 * time.Millisecond
	taken := make(chan string, 10)
	take := func(r *pipeline.Record) error { taken <- string(r.Value); return nil }
	var anew atomic.Int32
	all := []kafkaio.Tailed{{Topic: "a", Take: take, Anew: func() { anew.Add(1) }}}
	if err := kafkaio.Tail(ctx, g, spec, all, func() {}); err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-taken:
			if got != want {
				t.Errorf("taken: %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is not taken", want)
		}
	}
	next("0")
	admin := &kafka.Client{Addr: kafka.TCP(brokers...)}
	if _, err := admin.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{
		{Name: "a", Count: 2}}}); err != nil {
		t.Fatal(err)
	}
	kafkatest.Write(t, brokers, record("a", 1, "1"))
	next("1")
	for _, values := range [][]string{{"2", "3", "4"}, {}, {"5"}} {
		if _, err := admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		kafkatest.CreateTopics(t, brokers, 1, "a")
		for _, v := range values {
			kafkatest.Write(t, brokers, record("a", 0, v))
		}
		for _, v := range values {
			next(v)
		}
	}
	cancel()
	// Of two new topics at once it may have seen the second only.
	if err := g.Wait(); err != nil || len(taken) != 0 || anew.Load() < 2 || anew.Load() > 3 {
		t.Errorf("ended with %v, %d more taken, told %d times that the topic is new", err, len(taken), anew.Load())
	}
}

// firstLine takes the first line of a log.
type firstLine chan string

// Write implements io.Writer.
func (l firstLine) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestTopicThatCannotBeDescribed: who waits for the partitions of a topic that is not there, or that it may not see,
// says so.
func TestTopicThatCannotBeDescribed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	log := make(firstLine, 1)
	spec := tailSpec(t, kafkatest.Start(t), log)
	spec.Every = 10 * time.Millisecond
	ended := make(chan error, 1)
	go func() {
		ended <- kafkaio.EachPartition(ctx, spec, "none", func(context.Context, int) error { return nil })
	}()
	select {
	case line := <-log:
		if !strings.Contains(line, "level=WARN") || !strings.Contains(line, "topic=none") {
			t.Errorf("got the line %s, want a warning that names the topic", line)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is said")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
