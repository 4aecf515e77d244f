package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// repartitionConfig is a configuration in which nothing depends on the wall clock, for labels that come up to 20 s
// after their predictions: in a partition to which rows are sent in two halves, each in order of the labels' times,
// those of the second go back by so much.
func repartitionConfig(t *testing.T, brokers []string, partitions int, keyed bool) (path string, cfg config.Config) {
	t.Helper()
	return deploy(t, fmt.Sprintf(`
kafka: {brokers: [%q], partitions: %d}
topics: {keyed: %t}
event_time: {idle_timeout: 0s, max_ahead: 0s, allowed_lateness: 20s}
http: {listen: ""}
slices: {columns: [region]}
checkpoints: {dir: %q, interval: 100ms}
`, brokers[0], partitions, keyed, t.TempDir()))
}

// sendRows writes predictions and labels of rows to partitions of the topics, and then the promise that nothing before
// until follows. place says where row i goes.
func sendRows(t *testing.T, brokers []string, partitions int, rows []batchtest.Row, until int64,
	place func(i int, r *batchtest.Row) int) {
	t.Helper()
	parts := make([][]batchtest.Row, partitions)
	for i := range rows {
		p := place(i, &rows[i])
		parts[p] = append(parts[p], rows[i])
	}
	var ms []kafka.Message
	for p, part := range parts {
		ms = append(ms, messagesOf(t, part, p)...)
		for _, topic := range []string{"logits", "labels"} {
			ms = append(ms, kafka.Message{Topic: "plumbline." + topic, Partition: p, Value: []byte{},
				Time:    time.Unix(0, until),
				Headers: []kafka.Header{{Key: pipeline.WatermarkHeader, Value: strconv.AppendInt(nil, until, 10)}}})
		}
	}
	kafkatest.Write(t, brokers, ms...)
}

// drainedAt waits until every task has read and written everything, and the watermark is there; until = 0: wherever it
// is.
func drainedAt(t *testing.T, rt *engine.Engine, until int64) *engine.ProcessStatus {
	t.Helper()
	return eventually.Get(t, "drained", func() (*engine.ProcessStatus, bool) {
		st := rt.Status()
		return st, st.Drained && (until == 0 || st.Watermark == pipeline.Format(until))
	})
}

// TestKeyedIsDecidedOnce: where the shards of a group read the topics themselves, the log says that topics.keyed: false
// has no effect.
func TestKeyedIsDecidedOnce(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	_, cfg := repartitionConfig(t, brokers, 1, true)
	var log syncBuffer
	for _, keyed := range []bool{true, false} {
		cfg.Topics.Keyed = keyed
		rt := engine.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true}) }()
		eventually.True(t, "ready", func() bool { return rt.Ready() == nil })
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(log.String(), "topics.keyed is false and has no effect"); said == keyed {
			t.Errorf("keyed %t, said %t: %s", keyed, said, log.String())
		}
	}
}

// TestRepartition runs the same rows keyed and anywhere, these with a restart between that reads everything again, and
// compares the models' states. The repartition stage alone comes first, so that its sources are far apart.
func TestRepartition(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const partitions = 3
	rows := batchtest.Rows(7, batchtest.Options{N: 1500, MaxLag: 20 * batchtest.Second, Unlabelled: .1, Sharpness: 2,
		Regions: 2})
	until := rows[len(rows)-1].TS + 100*batchtest.Second
	all, err := parseStages("all")
	if err != nil {
		t.Fatal(err)
	}

	keyed := kafkatest.Start(t)
	_, cfg := repartitionConfig(t, keyed, partitions, true)
	sendRows(t, keyed, partitions, rows, until,
		func(_ int, r *batchtest.Row) int { return murmur.PartitionOf([]byte(r.ID), partitions) })
	rt, stop := start(t, cfg, all)
	want := drainedAt(t, rt, until)
	stop()

	unkeyed := kafkatest.Start(t)
	path, cfg := repartitionConfig(t, unkeyed, partitions, false)
	half := rows[750].TS
	anywhere := func(i int, _ *batchtest.Row) int { return i / 10 % partitions }
	sendRows(t, unkeyed, partitions, rows[:750], half, anywhere)
	rt, stop = start(t, cfg, engine.Stages{Repartition: true})
	st := drainedAt(t, rt, 0)
	stop()
	if n := reason(st.Counts, repartition.CountRepartitionRows, "logits"); n != 750 {
		t.Errorf("%d predictions repartitioned, want 750: %v", n, st.Counts)
	}
	first := 0
	for _, m := range kafkatest.ReadAll(t, unkeyed, kafkaclient.ByID(&cfg, cfg.Topics.Logits, partitions)) {
		news := func(h kafka.Header) bool { return h.Key == pipeline.SourceIdleHeader } // not made of a message
		if !slices.ContainsFunc(m.Headers, news) {
			first++
		}
	}
	rt, stop = start(t, cfg, all)
	drainedAt(t, rt, half)
	stop()
	forgetOffsets(t, unkeyed, cfg, partitions)
	sendRows(t, unkeyed, partitions, rows[750:], until, anywhere)
	rt, stop = start(t, cfg, all)
	got := drainedAt(t, rt, until)
	stop()
	if !maps.Equal(got.Models, want.Models) || len(want.Models) == 0 {
		t.Errorf("state hashes %v, of the keyed rows %v", got.Models, want.Models)
	}
	for _, name := range []string{"predictions", "labels", "labelled", "late", "duplicates", "corrections"} {
		if got.Counts[name] != want.Counts[name] {
			t.Errorf("%s: %v, of the keyed rows %v", name, got.Counts[name], want.Counts[name])
		}
	}
	if n := reason(got.Counts, pipeline.CountRepeats, "logits"); n != int64(first) {
		t.Errorf("%d repeats of messages, want %d: those of the first half", n, first)
	}
	if got.Unaccounted != 0 || len(kafkatest.ReadAll(t, unkeyed, cfg.Topics.DeadLetter)) != 0 {
		t.Errorf("%d rows unaccounted, counts %v", got.Unaccounted, got.Counts)
	}
	if res := replayOfTopics(t, path); res.StateHash != got.StateHash {
		t.Errorf("replay: state hash %s, want %s", res.StateHash, got.StateHash)
	}
}

func reason(counts map[string]any, name, of string) int64 {
	by, _ := counts[name].(map[string]int64)
	return by[of]
}

// forgetOffsets sets what the repartition groups have committed back to the start.
func forgetOffsets(t *testing.T, brokers []string, cfg config.Config, partitions int) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	for in, topic := range map[string]string{"logits": cfg.Topics.Logits, "labels": cfg.Topics.Labels} {
		var offsets []kafka.OffsetCommit
		for p := range partitions {
			offsets = append(offsets, kafka.OffsetCommit{Partition: p, Offset: 0})
		}
		res, err := client.OffsetCommit(context.Background(), &kafka.OffsetCommitRequest{GroupID: cfg.Group +
			"-repartition-" + in + fmt.Sprintf("-%d", partitions), GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{topic: offsets}})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				t.Fatal(p.Error)
			}
		}
	}
}

func TestRepartitionNeedsATopic(t *testing.T) {
	_, cfg := repartitionConfig(t, kafkatest.Start(t), 1, true)
	rt := engine.New(cfg, slog.New(slog.DiscardHandler))
	if err := rt.Run(context.Background(), engine.Stages{Repartition: true}); err == nil {
		t.Error("it ran without a topic to split")
	}
}
