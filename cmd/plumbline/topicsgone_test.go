package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestDeletedTopicsAreNamed deletes topics under a process: what it reads by inputs, and what it writes. For as long as
// one is missing the process is not ready, and status, metrics and log name it with what mends it. Made again, with
// fewer partitions, each goes on without a restart, also while another is still missing.
func TestDeletedTopicsAreNamed(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	_, cfg := deploy(t, fmt.Sprintf(`
kafka: {brokers: [%q], partitions: 2}
topics: {labels: ''}
inputs: [{topic: rows, model: m}, {topic: others, model: m}]
models: [{name: m, classes: 2}]
http: {listen: ""}
checkpoints: {dir: %q, interval: 100ms}
`, brokers[0], t.TempDir()))
	var log syncBuffer
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	rt.WatchEvery = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true}) }()
	kafkatest.Write(t, brokers, jsonRows(0, 20, 2)...)
	counted(t, rt, 20)
	remove(t, brokers, "rows", "others", cfg.Topics.Snapshots)
	named := func(topic string) bool {
		err := rt.Ready()
		return err != nil && strings.Contains(err.Error(), "topic "+topic+" does not exist any more")
	}
	eventually.True(t, "all are named", func() bool {
		return named("rows") && named("others") && named(cfg.Topics.Snapshots)
	})
	if st := rt.Status(); len(st.Failing) != 1 || st.Failing[0].Task != "topics" || st.Drained ||
		!strings.Contains(st.Failing[0].Cause, "plumbline topics create") {
		t.Errorf("status: failing %+v, drained %t", st.Failing, st.Drained)
	}
	if got := strings.Count(log.String(), "others does not exist any more"); got < 1 || got > 2 {
		t.Errorf("%d lines name the topic, want one when it is seen:\n%s", got, log.String())
	}
	kafkatest.CreateTopics(t, brokers, 1, "rows", cfg.Topics.Snapshots)
	kafkatest.Write(t, brokers, jsonRows(20, 30, 1)...)
	eventually.True(t, "rows goes on without the other", func() bool {
		return rt.Status().Counts["predictions"] == int64(50)
	})
	eventually.True(t, "only the other is named", func() bool {
		return named("others") && !named("rows") && !named(cfg.Topics.Snapshots)
	})
	kafkatest.CreateTopics(t, brokers, 1, "others")
	others := jsonRows(50, 10, 1)
	for i := range others {
		others[i].Topic = "others"
	}
	kafkatest.Write(t, brokers, others...)
	counted(t, rt, 60)
	eventually.True(t, "ready", func() bool { return rt.Ready() == nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, brokers []string, topics ...string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	for topic, err := range res.Errors {
		if err != nil {
			t.Fatalf("delete %s: %v", topic, err)
		}
	}
}
