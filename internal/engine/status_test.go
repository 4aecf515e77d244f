package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

type fakeTask struct{ st *pipeline.TaskStatus }

func (f fakeTask) Status() *pipeline.TaskStatus { return f.st }

func TestProcessStatus(t *testing.T) {
	long, now := time.Now().Add(-time.Minute), time.Now()
	shard := func(p int, wm int64, caughtUp bool, active time.Time, counts map[string]int64) fakeTask {
		return fakeTask{&pipeline.TaskStatus{Task: "shard", Partition: p, WM: wm, CaughtUp: caughtUp, Active: active,
			Counts: counts}}
	}
	model := fakeTask{&pipeline.TaskStatus{Task: "model", CaughtUp: true, Active: long,
		StateHash: map[string]string{"m": "h"}}}
	unhashed := fakeTask{&pipeline.TaskStatus{Task: "model", CaughtUp: true, Active: long}}
	wrote := func(p int, n ...uint64) fakeTask {
		f := shard(p, 5e9, true, long, nil)
		f.st.PanesWritten = n
		return f
	}
	took := func(p int, n ...uint64) fakeTask {
		return fakeTask{&pipeline.TaskStatus{Task: "model", Partition: p, CaughtUp: true, Active: long, PanesTaken: n,
			StateHash: map[string]string{}}}
	}
	for _, c := range []struct {
		name      string
		tasks     []fakeTask
		drained   bool
		watermark string
		ready     bool
	}{
		{"nothing assigned", nil, false, "", false},
		{"restoring", []fakeTask{{nil}, model}, false, "", false},
		{"done", []fakeTask{shard(0, 5e9, true, long, nil), shard(1, 3e9, true, long, nil), model}, true,
			"1970-01-01T00:00:03Z", true},
		{"reading", []fakeTask{shard(0, 5e9, false, long, nil), model}, false, "1970-01-01T00:00:05Z", true},
		{"active a moment ago", []fakeTask{shard(0, 5e9, true, now, nil), model}, false, "1970-01-01T00:00:05Z", true},
		{"the state hash is yet to come", []fakeTask{shard(0, 5e9, true, long, nil), unhashed}, false,
			"1970-01-01T00:00:05Z", true},
		{"the model task has not got every pane", []fakeTask{wrote(0, 3, 4), took(1, 3, 9), took(0, 3)}, false,
			"1970-01-01T00:00:05Z", true},
		{"nor any of another shard", []fakeTask{wrote(1, 3), took(0, 3)}, false, "1970-01-01T00:00:05Z", true},
		{"it has", []fakeTask{wrote(1, 3, 4), took(1, 9, 4), took(0, 0, 3)}, true, "1970-01-01T00:00:05Z", true},
		{"a shard has seen nothing", []fakeTask{shard(0, 5e9, true, long, nil),
			shard(1, pipeline.NoTime, true, long, nil)}, true, "", true},
	} {
		rt := New(config.Default(), slog.New(slog.NewTextHandler(io.Discard, nil)))
		for i, task := range c.tasks {
			rt.add(taskName("t", i), task)
		}
		st := rt.Status()
		if st.Drained != c.drained || st.Watermark != c.watermark || (rt.Ready() == nil) != c.ready {
			t.Errorf("%s: drained %v, watermark %q, ready %v", c.name, st.Drained, st.Watermark, rt.Ready())
		}
	}
}

// TestDrainedHasEveryStage: a process whose model tasks are not assigned yet, as they are not while the session of one
// that was killed lasts, is not drained because its shards are.
func TestDrainedHasEveryStage(t *testing.T) {
	t.Parallel()
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	long := time.Now().Add(-time.Minute)
	task := func(stage string, p int) {
		st := &pipeline.TaskStatus{Task: stage, Partition: p, CaughtUp: true, Active: long,
			StateHash: map[string]string{}}
		rt.add(taskName(stage, p), fakeTask{st})
		rt.reads(taskName(stage, p), &kafkaio.Source{})
	}
	drained := func(want bool, when string) {
		t.Helper()
		if got := rt.Status().Drained; got != want {
			t.Errorf("%s: drained %t", when, got)
		}
	}
	rt.due.await(stageShards, stageModels)
	shards, models := rt.due.has(stageShards, 2), rt.due.has(stageModels, 1)
	shards([]int{0, 1, 2}, true) // the topics have a partition that no shard reads
	task(stageShards, 0)
	task(stageShards, 1)
	drained(false, "the group of the models has not said anything")
	models([]int{0}, true)
	drained(false, "the model task has not begun")
	task(stageModels, 0)
	drained(true, "all tasks are there")
	models(nil, false)
	drained(false, "the group of the models assigns anew")
	rt.remove(taskName(stageModels, 0))
	models([]int{}, true)
	drained(true, "another process has the model task")
	rt.due.await(deployment.SplitterOf(scale.Source{Input: pipeline.Logits}))
	drained(false, "a topic is split by id, and nobody does so yet")
	rt.due.leave(deployment.SplitterOf(scale.Source{Input: pipeline.Logits}))
	drained(true, "no topic is split any more")
}

// TestReadyHasEveryStage: a process is not ready before it has been in the group of each of its stages, with or without
// a partition, and says which it lacks and why; nor where it is out of one for long, which no rebalance takes.
func TestReadyHasEveryStage(t *testing.T) {
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	shards, models := kafkaio.Group{ID: "g-shards"}, kafkaio.Group{ID: "g-models"}
	rt.due.await(stageShards, stageModels)
	rt.due.follow(&shards, stageShards, 1)
	rt.due.follow(&models, stageModels, 1)
	ready := func(when string, want ...string) {
		t.Helper()
		err := rt.Ready()
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", when, err)
		}
		for _, text := range want {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", when, err, text)
			}
		}
	}
	ready("no group has said anything", "stage model: not in its group g-models since", "stage shard: ")
	shards.Has([]int{0}, true)
	rt.add(taskName(stageShards, 0), fakeTask{&pipeline.TaskStatus{Task: stageShards}})
	models.Outside(kafka.GroupAuthorizationFailed)
	ready("the models' group refuses", "stage model", kafka.GroupAuthorizationFailed.Error())
	if st := rt.Status(); len(st.Outside) != 1 || st.Outside[0].Group != "g-models" || st.Outside[0].Error == "" {
		t.Errorf("the status says %+v", st.Outside)
	}
	if _, ok := gauges(t, rt)["group_out_timestamp_seconds model"]; !ok {
		t.Error("no metric of it")
	}
	models.Has([]int{}, true)
	ready("another process has the model task")
	rt.add(taskName(stageShards, 1), fakeTask{})
	ready("a second shard restores its state", "1 of 2 tasks")
	rt.remove(taskName(stageShards, 1))
	models.Has(nil, false)
	ready("the models' group assigns anew")
	if out := rt.due.outside(time.Now().Add(2 * outOfGroup)); len(out) != 1 || out[0].Stage != stageModels {
		t.Errorf("out of the models' group for long: %+v", out)
	}
	models.Has([]int{}, true)
	if out := rt.due.outside(time.Now().Add(2 * outOfGroup)); len(out) != 0 {
		t.Errorf("in all groups: %+v", out)
	}
}

// TestDrainedAsksWhereLogsEnd: what a process was told last of its logs is not what they hold now.
func TestDrainedAsksWhereLogsEnd(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "panes")
	client := &kafka.Client{Addr: kafka.TCP(brokers...)}
	var gate kafkaio.Gate
	src := kafkaio.NewSource(kafkaio.Spec{Client: client, MaxBytes: 1 << 20, Gate: &gate,
		Topics: map[pipeline.Input]string{pipeline.Panes: "panes"}, Next: map[pipeline.Input]int64{pipeline.Panes: 0},
		Log: slog.New(slog.DiscardHandler)})
	defer src.Close()
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	rt.ends = func(ctx context.Context, marks []kafkaio.Mark) (bool, error) {
		return kafkaio.AtEnd(ctx, client, marks)
	}
	st := &pipeline.TaskStatus{Task: stageModels, CaughtUp: true, Active: time.Now().Add(-time.Minute),
		Next: map[string]int64{"panes": 1}, StateHash: map[string]string{}}
	rt.add(taskName(stageModels, 0), fakeTask{st})
	rt.reads(taskName(stageModels, 0), src)
	next := func(want bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := src.Next(ctx); (err == nil) != want {
			t.Errorf("a record: %v", err)
		}
	}
	next(false)
	if !rt.Status().Drained {
		t.Error("not drained at the end of an empty log")
	}
	gate.Close() // the source takes nothing, and its task shows what it has
	kafkatest.Write(t, brokers, kafka.Message{Topic: "panes", Value: []byte("a pane")})
	if rt.Status().Drained {
		t.Error("drained though the log has a message that no task has")
	}
	gate.Open()
	next(true)
	next(false)
	if !rt.Status().Drained {
		t.Error("not drained once it has")
	}
	rt.ends = func(context.Context, []kafkaio.Mark) (bool, error) { return true, io.ErrUnexpectedEOF }
	if rt.Status().Drained {
		t.Error("drained though no broker said where the logs end")
	}
}

// TestFailingTaskIsNamed: a process with a task that fails is neither ready nor drained, and says which task, at which
// record and why, until the task goes elsewhere.
func TestFailingTaskIsNamed(t *testing.T) {
	cfg := config.Default()
	cfg.Checkpoints.Dir = t.TempDir()
	rt := New(cfg, slog.New(slog.DiscardHandler))
	rt.add("shard-0", fakeTask{&pipeline.TaskStatus{Task: "shard", CaughtUp: true,
		Active: time.Now().Add(-time.Minute)}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- rt.attempts.Run(ctx, attempts.ID{Task: "shard", Partition: 3},
			func(context.Context, *attempts.Guard) error {
				return lasting(&pipeline.TakeError{Topic: "logits", Partition: 3, Offset: 812,
					Err: pipeline.ErrUnusable})
			})
	}()
	eventually.True(t, "a task fails", func() bool { return len(rt.attempts.Failing()) > 0 })
	st, ready := rt.Status(), rt.Ready()
	if st.Drained || len(st.Failing) != 1 || ready == nil {
		t.Fatalf("drained %t, failing %v, ready %v", st.Drained, st.Failing, ready)
	}
	for _, want := range []string{"shard 3 has failed 1 times", "logits partition 3 offset 812",
		"no checkpoint can be used", "the next try is at"} {
		if !strings.Contains(ready.Error(), want) {
			t.Errorf("not ready because %q, want %q in it", ready, want)
		}
	}
	if pause := time.Until(st.Failing[0].Next); pause < 50*time.Second {
		t.Errorf("the next try is in %v: a person has to mend it", pause)
	}
	cancel()
	if err := <-done; err != nil || rt.Ready() != nil || !rt.Status().Drained {
		t.Errorf("%v, ready %v, once the task has gone", err, rt.Ready())
	}
}

func TestCountTree(t *testing.T) {
	got := countTree([]*pipeline.TaskStatus{
		{Counts: map[string]int64{"predictions": 3, "rejected:classes": 1, "messages:logits": 2}},
		{Counts: map[string]int64{"predictions": 4, "rejected:classes": 2, "rejected:no_id": 5, "new": 1}}})
	if got["predictions"] != int64(7) || got["labelled"] != int64(0) || got["new"] != int64(1) {
		t.Errorf("counts %v", got)
	}
	if r := got["rejected"].(map[string]int64); r["classes"] != 3 || r["no_id"] != 5 {
		t.Errorf("rejected %v", r)
	}
	if m := got["messages"].(map[string]int64); m["logits"] != 2 {
		t.Errorf("messages %v", m)
	}
}

func TestCombineHashes(t *testing.T) {
	a := CombineHashes(map[string]string{"m": "1", "n": "2"})
	if a == "" || a != CombineHashes(map[string]string{"n": "2", "m": "1"}) ||
		a == CombineHashes(map[string]string{"m": "2", "n": "1"}) || CombineHashes(nil) != "" {
		t.Error("the hash must depend on every model and its hash, and on nothing else")
	}
}

// TestWaitText: who sees a silent input learns when it is no longer waited for, if ever.
func TestWaitText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]kafkaio.Silence{
		"since 03:04:05": {Since: at},
		"since 03:04:05, until 03:05:05 (event_time.idle_timeout)": {Since: at, Until: at.Add(time.Minute)},
	} {
		if got := waitText(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestUnusedTopics: while nothing comes from a topic of Arrow messages beside inputs, the status says how nobody waits
// for it; a topic with records, or one that is an input itself, is used.
func TestUnusedTopics(t *testing.T) {
	predictions, labels := inputs.Config{Topic: "rows"}, inputs.Config{Topic: "truths", Rows: "labels"}
	same := []inputs.Config{{Topic: "plumbline.logits"}, {Topic: "plumbline.labels", Rows: "labels"}}
	for _, c := range []struct {
		in     pipeline.Input
		by     []inputs.Config
		topic  string
		never  bool
		needed string // "": nothing is said
	}{
		{pipeline.Logits, nil, "plumbline.logits", true, ""},
		{pipeline.Logits, []inputs.Config{predictions}, "plumbline.logits", true,
			"topics.logits names a topic of inputs"},
		{pipeline.Logits, []inputs.Config{predictions}, "plumbline.logits", false, ""},
		{pipeline.Logits, []inputs.Config{predictions}, "rows", true, ""},
		{pipeline.Logits, []inputs.Config{labels}, "plumbline.logits", true, ""},
		{pipeline.Logits, same, "plumbline.logits", true, ""},
		{pipeline.Labels, same, "plumbline.labels", true, ""},
		{pipeline.Labels, []inputs.Config{predictions}, "plumbline.labels", true, "topics.labels is empty"},
		{pipeline.Labels, []inputs.Config{predictions, labels}, "plumbline.labels", true,
			"topics.labels names a topic of inputs"},
	} {
		cfg := config.Default()
		cfg.Inputs = c.by
		got := unused(&cfg, c.in, kafkaio.Silence{Topic: c.topic, Never: c.never})
		if (got == "") != (c.needed == "") || !strings.Contains(got, c.needed) {
			t.Errorf("%s of %v: got %q, want %q", c.topic, c.by, got, c.needed)
		}
	}
}

// TestWhatHoldsPanesBack: a shard is held back by an input that is behind the others; what is split by id, by a topic
// that has been silent since the start, or for long.
func TestWhatHoldsPanesBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shard := &pipeline.TaskStatus{Task: "shard", Inputs: []pipeline.Time{1e12, pipeline.NoTime}}
	relay := &pipeline.TaskStatus{Task: "input-rows"}
	for _, c := range []struct {
		task   *pipeline.TaskStatus
		in     pipeline.Input
		quiet  time.Duration
		never  bool
		newest pipeline.Time
		want   bool
	}{
		{shard, pipeline.Logits, time.Hour, false, 1e12, false},
		{shard, pipeline.Logits, time.Hour, false, 2e12, true},
		{shard, pipeline.Logits, time.Second, false, 2e12, false},
		{shard, pipeline.Labels, time.Minute, true, 2e12, true},
		{relay, pipeline.Logits, time.Second, true, 2e12, false},
		{relay, pipeline.Logits, 30 * time.Second, true, 2e12, true},
		{relay, pipeline.Logits, 30 * time.Second, false, 2e12, false},
		{relay, pipeline.Logits, time.Hour, false, 2e12, true},
	} {
		s := kafkaio.Silence{Since: now.Add(-c.quiet), Never: c.never}
		if got := holds(c.task, c.in, s, c.newest, now); got != c.want {
			t.Errorf("%s %s, silent for %s (never: %t), newest %d: got %t", c.task.Task, c.in, c.quiet, c.never,
				c.newest, got)
		}
	}
}

// TestKafkaSilence: the status has the longest silence of the groups, until the last of them is answered.
func TestKafkaSilence(t *testing.T) {
	var s silence
	shards, models := s.heardNothing("shards"), s.heardNothing("models")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shards(time.Time{}, nil)
	if got := s.kafkaSilence(); got != nil {
		t.Errorf("nobody is silent: got %v", got)
	}
	shards(at.Add(time.Second), errors.New("refused"))
	models(at, errors.New("timeout"))
	if got := s.kafkaSilence(); got == nil || !got.Since.Equal(at) || got.Error != "timeout" {
		t.Errorf("got %v, want since %v: timeout", got, at)
	}
	models(time.Time{}, nil)
	if got := s.kafkaSilence(); got == nil || got.Error != "refused" {
		t.Errorf("got %v, want that of the shards", got)
	}
	shards(time.Time{}, nil)
	if got := s.kafkaSilence(); got != nil {
		t.Errorf("all are answered: got %v", got)
	}
}

// TestShutOut: a process that brokers refuse in a group that it was in is not ready, and says so; while nobody answers
// it stays ready.
func TestShutOut(t *testing.T) {
	rt := New(config.Default(), slog.New(slog.DiscardHandler))
	rt.add("shard-0", fakeTask{&pipeline.TaskStatus{Task: "shard"}})
	silent := rt.heardNothing(stageShards)
	for _, c := range []struct {
		err  error
		want string // "" = ready
	}{
		{io.EOF, ""},
		{fmt.Errorf("coordinator of the group: %w", kafka.GroupAuthorizationFailed),
			"stage shard: not in its group any more since 2026-01-02T03:04:05Z: coordinator of the group: [30]"},
		{nil, ""},
	} {
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if c.err == nil {
			at = time.Time{}
		}
		silent(at, c.err)
		if err := rt.Ready(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: ready: %v, want %q", c.err, err, c.want)
		}
	}
}

// TestClassesOfModels: rows of another K are known by the configuration, by what was settled for all shards, and by a
// model task of this process; what is not settled may change.
func TestClassesOfModels(t *testing.T) {
	cfg := config.Default()
	cfg.Models = []config.Model{{Name: "declared", Classes: 3}, {Name: "open"}}
	rt := New(cfg, slog.New(slog.DiscardHandler))
	rt.Show(&record.Calibrator{Model: "settled", Version: "1", Classes: 4, Reason: "classes", DecidedAt: record.At(1)})
	rt.tasks["model"] = fakeTask{&pipeline.TaskStatus{Task: "model", Versions: []record.VersionStatus{
		{Model: "state", Version: "1", Classes: 5, Settled: true}, {Model: "state", Version: "2", Classes: 6},
		{Model: "open", Version: "1", Classes: 7, Settled: true}}}}
	for key, want := range map[[2]string]int{
		{"declared", "9"}: 3, {"settled", "1"}: 4, {"settled", "2"}: 0, {"state", "1"}: 5, {"state", "2"}: 0,
		{"open", "1"}: 7, {"nobody", "1"}: 0,
	} {
		if got := (LatestCalibrators{rt}).Classes(key[0], key[1]); got != want {
			t.Errorf("K of %v is %d, want %d", key, got, want)
		}
	}
}
