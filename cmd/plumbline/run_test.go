package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/record"
)

// start runs an engine until stop, which waits for its last checkpoint.
func start(t *testing.T, cfg config.Config, which engine.Stages) (rt *engine.Engine, stop func()) {
	t.Helper()
	rt = engine.New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, which) }()
	return rt, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func drained(t *testing.T, rt *engine.Engine) *engine.ProcessStatus {
	t.Helper()
	return eventually.Get(t, "drained", func() (*engine.ProcessStatus, bool) {
		st := rt.Status()
		return st,
			st.Drained
	})
}

// TestRunAndReplay runs the whole pipeline on an in-process broker with one partition that stays empty, stops and
// starts it half way, and compares with the replay of the topics: the same state hash, every row counted once.
func TestRunAndReplay(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for name, more := range map[string]string{
		"directory": "checkpoints: {dir: %q, interval: 100ms}\n",
		"topic":     "checkpoints: {dir: %q, interval: 300ms, rows: 100, store: topic}\njoin: {memory_bytes: 2000}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRunAndReplay(t, more)
		})
	}
}

func testRunAndReplay(t *testing.T, more string) {
	const partitions = 3
	brokers := kafkatest.Start(t)
	dir := t.TempDir()
	path, cfg := deploy(t,
		fmt.Sprintf("kafka: {brokers: [%q], partitions: %d}\nevent_time: {idle_timeout: 500ms, max_ahead: 0s}\n"+
			"http: {listen: \"\"}\nslices: {columns: [region]}\n"+more, brokers[0], partitions, dir))
	rows := batchtest.Rows(1, batchtest.Options{N: 1500, MaxLag: 20 * batchtest.Second, Unlabelled: .1, Sharpness: 2,
		Regions: 2})
	send := func(rows []batchtest.Row) {
		t.Helper()
		var ms []kafka.Message
		for p, part := range batchtest.Split(rows, partitions-1) { // by id over all but the last
			ms = append(ms, messagesOf(t, part, p)...)
		}
		kafkatest.Write(t, brokers, ms...)
	}
	all := engine.Stages{Shards: true, Models: true}
	send(rows[:900])
	rt, stop := start(t, cfg, all)
	drained(t, rt)
	stop()
	// Far enough that nothing is late: the idle inputs had closed the pane of the newest row.
	rest := rows[900:]
	for i := range rest {
		rest[i].TS += 60 * batchtest.Second
		rest[i].LabelTS += 60 * batchtest.Second
	}
	send(rest)
	rt, stop = start(t, cfg, all)
	st := drained(t, rt)
	stop()
	labelled := int64(len(batchtest.ByLabelTime(rows)))
	if p, l, late := st.Counts["predictions"], st.Counts["labelled"], st.Counts["late"]; p != int64(1500) ||
		l != labelled || late != int64(0) {
		t.Errorf("predictions %v, labelled %v, late %v; want 1500, %d, 0", p, l, late, labelled)
	}
	if st.Unaccounted != 0 {
		t.Errorf("%d rows unaccounted for: %v", st.Unaccounted, st.Counts)
	}
	if len(st.Tasks) != 2*partitions || st.StateHash == "" {
		t.Errorf("%d tasks, state hash %q", len(st.Tasks), st.StateHash)
	}

	// Once more over the checkpoints: nothing new, the same state.
	rt, stop = start(t, cfg, all)
	again := drained(t, rt)
	moments := map[string]bool{}
	for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Snapshots) {
		s, err := record.Decode[record.Snapshot](m.Value)
		if err != nil {
			t.Fatal(err)
		}
		moment := s.At
		if s.Window.Kind == "time" {
			moment = s.Window.End
		}
		moments[fmt.Sprint(string(m.Key), s.Window.Name, moment)] = true
	}
	eventually.Get(t, fmt.Sprintf("%d snapshots of before are shown", len(moments)), func() (int, bool) {
		n := rt.History.Totals().Snapshots
		return n, n == len(moments)
	})
	stop()
	if again.StateHash != st.StateHash {
		t.Errorf("state hash %s after a restart, want %s", again.StateHash, st.StateHash)
	}

	res := replayOfTopics(t, path)
	if res.StateHash != st.StateHash || res.Rows != 1500 || res.Labelled != labelled {
		t.Errorf("replay: state hash %s, %d rows, %d labelled; want %s, 1500, %d", res.StateHash, res.Rows,
			res.Labelled, st.StateHash, labelled)
	}
	if text := run(t, "replay", "--topic", "-c", path); len(res.Snapshots) == 0 ||
		!strings.Contains(text, "state hash "+st.StateHash+"\n") {
		t.Errorf("%d snapshots; without any: %s, want state hash %s", len(res.Snapshots), text, st.StateHash)
	}
	live := 0
	for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Calibrators) {
		if !bytes.HasSuffix(m.Key, []byte("/"+record.StageTop)) {
			live++
		}
	}
	if live != countPublished(res.Calibrators) {
		t.Errorf("%d calibrators published live, %d in replay", live, countPublished(res.Calibrators))
	}
	if len(kafkatest.ReadAll(t, brokers, cfg.Topics.DeadLetter)) != 0 {
		t.Error("dead letters of good messages")
	}
}

func countPublished(cs []record.Calibrator) int {
	n := 0
	for _, c := range cs {
		if c.Published {
			n++
		}
	}
	return n
}

func TestRunRefusesTopicsThatDoNotFit(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "plumbline.logits")
	kafkatest.CreateTopics(t, brokers, 3, "plumbline.labels", "plumbline.panes")
	cfg := config.Default()
	cfg.Kafka.Brokers, cfg.Checkpoints.Dir, cfg.HTTP.Listen = brokers, t.TempDir(), ""
	cfg.Topics.Keyed = true
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	err := rt.Run(context.Background(), engine.Stages{Shards: true})
	const want = "topic plumbline.logits has 2 partitions, plumbline.labels has 3: " +
		"predictions and labels join by partition, so they need the same number"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestParseStages(t *testing.T) {
	for s, want := range map[string]engine.Stages{"all": {Shards: true, Models: true, Repartition: true},
		"shards": {Shards: true}, "models": {Models: true}, "repartition,shards": {Shards: true, Repartition: true}} {
		if got, err := parseStages(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	if _, err := parseStages("none"); err == nil {
		t.Error("none: want an error")
	}
}
