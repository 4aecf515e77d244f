package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// grow gives a topic partitions.
func grow(t *testing.T, brokers []string, topic string, count int) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	res, err := client.CreatePartitions(context.Background(),
		&kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(count)}}})
	if err == nil {
		err = res.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPartitionsAddedWhileRunning: the run goes on, and says which partitions nobody reads.
func TestPartitionsAddedWhileRunning(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for topic, want := range map[string]string{"logits": "plumbline scale", "panes": "nothing is missing"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Start(t)
			_, cfg := repartitionConfig(t, brokers, 2, true)
			rt := engine.New(cfg, slog.New(slog.DiscardHandler))
			rt.WatchEvery = 100 * time.Millisecond
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true}) }()
			drained(t, rt)
			grow(t, brokers, "plumbline."+topic, 3)
			eventually.True(t, "the partition is named", func() bool {
				err := rt.Ready()
				return err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(),
					fmt.Sprintf("topic plumbline.%s has 3 partitions, and had 2 when the deployment began", topic))
			})
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTopicsChangedBetweenRuns: other topics under the same group are refused at the start; all may grow.
func TestTopicsChangedBetweenRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, brokers []string, cfg *config.Config)
		want   string
	}{
		"nothing": {func(*testing.T, []string, *config.Config) {}, ""},
		"both inputs": {func(t *testing.T, brokers []string, cfg *config.Config) {
			grow(t, brokers, cfg.Topics.Logits, 4)
			grow(t, brokers, cfg.Topics.Labels, 4)
		}, ""},
		"one input": {func(t *testing.T, brokers []string, cfg *config.Config) {
			grow(t, brokers, cfg.Topics.Labels, 4)
		}, ""},
		"panes": {func(t *testing.T, brokers []string, cfg *config.Config) {
			grow(t, brokers, cfg.Topics.Panes, 4)
		}, ""},
		"names": {func(t *testing.T, brokers []string, cfg *config.Config) {
			kafkatest.CreateTopics(t, brokers, 2, "other")
			cfg.Topics.Logits = "other"
		}, `topics.logits is "other", the state of group plumbline is of "plumbline.logits"`},
		"no labels": {func(_ *testing.T, _ []string, cfg *config.Config) {
			cfg.Topics.Labels = ""
		}, `topics.labels is "", the state`},
	} {
		for _, store := range []string{pipeline.StoreDirectory, pipeline.StoreTopic} {
			t.Run(name+" "+store, func(t *testing.T) {
				brokers := kafkatest.Start(t)
				_, cfg := repartitionConfig(t, brokers, 2, true)
				cfg.Checkpoints.Store = store
				if store == pipeline.StoreTopic {
					kafkatest.CreateTopics(t, brokers, 2, cfg.Topics.Checkpoints)
				}
				check := func() error {
					d := deployment.New(&cfg, slog.New(slog.DiscardHandler))
					if err := d.Connect(); err != nil {
						t.Fatal(err)
					}
					return d.Open(context.Background())
				}
				if err := check(); err != nil {
					t.Fatalf("at the first start: %v", err)
				}
				c.change(t, brokers, &cfg)
				err := check()
				if c.want == "" && err != nil || c.want != "" && (err == nil ||
					!strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		}
	}
}

// TestPauseAndResume: nothing is read while the process is paused, what was read is in checkpoints, everybody is told,
// and then it goes on. An idle shard that is paused takes back that it is idle.
func TestPauseAndResume(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	_, cfg := repartitionConfig(t, brokers, 2, true)
	cfg.HTTP.Control, cfg.EventTime.IdleTimeout = true, 300*time.Millisecond
	rows := batchtest.Rows(3, batchtest.Options{N: 400, MaxLag: 5 * batchtest.Second, Sharpness: 2, Regions: 2})
	for i := range rows[200:] { // far enough that nothing is late: idle inputs close the pane of the newest row
		rows[200+i].TS += 60 * batchtest.Second
		rows[200+i].LabelTS += 60 * batchtest.Second
	}
	byID := func(_ int, r *batchtest.Row) int { return murmur.PartitionOf([]byte(r.ID), 2) }
	sendRows(t, brokers, 2, rows[:200], rows[199].TS, byID)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rt := engine.New(cfg, slog.New(slog.DiscardHandler))
	rt.Listener = l
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true}) }()
	base := "http://" + l.Addr().String()
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	drained(t, rt)
	if code, body := get("/-/ready"); code != http.StatusOK {
		t.Errorf("before: %d %s", code, body)
	}
	pause := []string{"pause", "--url", base, "--by", "ann", "--why", "a new disk", "--wait", "20s"}
	if code, out, stderr := runCommand(t, pause...); code != exitDone ||
		!strings.Contains(out, `by "ann": a new disk (settled: true)`) {
		t.Fatalf("pause: %d %s %s", code, out, stderr)
	}
	before := rt.Status()
	sendRows(t, brokers, 2, rows[200:], rows[399].TS+50*batchtest.Second, byID)
	eventually.True(t, "a lag is seen while records wait", func() bool { // the log's end is asked for now and then
		_, m := get("/metrics")
		return strings.Contains(m, `plumbline_lag_offsets{input="logits",partition="0",task="shard"} `) &&
			!strings.Contains(m, `plumbline_lag_offsets{input="logits",partition="0",task="shard"} 0`)
	})
	if st := rt.Status(); st.Counts["predictions"] != before.Counts["predictions"] || st.Paused == nil ||
		!st.Paused.Settled {
		t.Errorf("while paused: %v predictions, %v before; %+v", st.Counts["predictions"], before.Counts["predictions"],
			st.Paused)
	}
	if code, body := get("/-/ready"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "paused since") || !strings.Contains(body, "a new disk") {
		t.Errorf("ready while paused: %d %s", code, body)
	}
	_, metrics := get("/metrics")
	if !strings.Contains(metrics, "\nplumbline_paused 1\n") {
		t.Error("no plumbline_paused 1")
	}
	if code, out, _ := runCommand(t, "resume", "--url", base); code != exitDone || !strings.Contains(out, "reads") {
		t.Errorf("resume: %d %s", code, out)
	}
	st := drainedAt(t, rt, rows[399].TS+50*batchtest.Second)
	if st.Counts["predictions"] != int64(400) || st.Counts["late"] != int64(0) || st.Paused != nil {
		t.Errorf("after: %v, %+v", st.Counts, st.Paused)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCommand(t, "pause", "--why", "x", "--url", base); code != exitFailed || stderr == "" {
		t.Errorf("pause of a process that has gone: %d %s", code, stderr)
	}
}

// TestStopIsLogged: the last line of a clean stop says why, how long it took and whether the last checkpoints are
// there. A task that takes no checkpoint is named.
func TestStopIsLogged(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		name, want string
		broken     bool
	}{
		{"clean", `tasks=4 last_checkpoints=written`, false},
		{"no checkpoint", `tasks=4 last_checkpoints="missing of [shard 0 shard 1]: `, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Start(t)
			_, cfg := repartitionConfig(t, brokers, 2, true)
			var log syncBuffer
			rt := engine.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan error, 1)
			go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true}) }()
			drained(t, rt)
			rows := batchtest.Rows(3, batchtest.Options{N: 200, Sharpness: 2, Regions: 2})
			if dir := filepath.Join(cfg.Checkpoints.Dir, cfg.Group, "shards"); c.broken {
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			sendRows(t, brokers, 2, rows, rows[len(rows)-1].TS, func(_ int, r *batchtest.Row) int {
				return murmur.PartitionOf([]byte(r.ID), 2)
			})
			eventually.True(t, "taken, or failing", func() bool {
				st := rt.Status()
				return c.broken && len(st.Failing) == 2 || st.Counts["predictions"] == int64(len(rows))
			})
			cancel(errors.New("terminated signal received"))
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			last := lines[len(lines)-1]
			if !strings.Contains(last, `msg=stopped because="terminated signal received" took=`) ||
				!strings.Contains(last, c.want) {
				t.Errorf("the last line is\n%s\nwant %s", last, c.want)
			}
		})
	}
}

// TestStopIsBounded: work that does not end makes the process fail once the time is over, with the first error.
func TestStopIsBounded(t *testing.T) {
	cfg := config.Default()
	cfg.ShutdownTimeout = 50 * time.Millisecond
	rt := engine.New(cfg, slog.New(slog.DiscardHandler))
	hang := make(chan struct{})
	defer close(hang)
	parent, stop := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(parent)
	g.Go(func() error { <-hang; return nil })
	stop()
	if err := rt.WaitFor(ctx, g); err == nil || !strings.Contains(err.Error(), "shutdown_timeout, 50ms") {
		t.Errorf("got %v", err)
	}
	first := errors.New("the first error")
	g, ctx = errgroup.WithContext(context.Background())
	g.Go(func() error { <-hang; return nil })
	g.Go(func() error { return first })
	if err := rt.WaitFor(ctx, g); !errors.Is(err, first) {
		t.Errorf("got %v, want the first error too", err)
	}
	g, ctx = errgroup.WithContext(context.Background())
	g.Go(func() error { return nil })
	if err := rt.WaitFor(ctx, g); err != nil {
		t.Errorf("one that ends: %v", err)
	}
}
