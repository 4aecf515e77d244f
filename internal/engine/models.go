package engine

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/engine/recall"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// modelStage runs the model tasks of this process.
type modelStage struct {
	*host
	build  *builder
	view   *view
	turns  chan struct{} // of tasks that compute
	recall *recall.Recall
}

func newModelStage(h *host, build *builder, v *view) *modelStage {
	return &modelStage{host: h, build: build, view: v,
		turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		recall: recall.New(recall.Config{Show: v.Show, History: v.History, Kafka: h.Config.Kafka,
			Topic: h.Config.Topics.Snapshots, Read: h.TailSpec()})}
}

// run runs the tasks until ctx is done.
func (s *modelStage) run(ctx context.Context) error {
	g := s.group(s.Config.Group+"-models", stageModels, s.Panes(), s.Config.Topics.Panes)
	s.view.shareModels(&g, s.Panes())
	return g.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
		if p >= s.Panes() { // topicsWatch names it
			<-ctx.Done()
			return nil
		}
		id := attempts.ID{Task: stageModels, Partition: p}
		var alerts atomic.Int64
		return s.process.attempts.Run(ctx, id, func(ctx context.Context, guard *attempts.Guard) error {
			topics := map[pipeline.Input]string{pipeline.Panes: s.Config.Topics.Panes}
			return s.model(ctx, guard, p, &alerts, s.source(taskName(stageModels, p), topics, p, commit))
		})
	})
}

// model runs one model task until ctx is done or an error. alerts is reminder.alerts.
func (s *modelStage) model(
	ctx context.Context, guard *attempts.Guard, p int, alerts *atomic.Int64, open pipeline.Open,
) error {
	name := taskName(stageModels, p)
	defer s.process.remove(name)
	var task *model.Task
	trace := s.laneOf(stageModels, s.Config.Group+"-models")
	err := pipeline.Run(ctx, s.runner("models", guard, trace), func() (pipeline.Registered, error) {
		counts := pipeline.NewCounts()
		task = s.build.NewModelTask(p, counts)
		task.Trace = trace
		s.process.add(name, task)
		out := s.register(task, p, alerts)
		out.Counts = counts
		return out, nil
	}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		decided, snapshots := task.Remembered()
		s.recall.Restored(p, decided, snapshots)
		return open(next)
	})
	return lasting(gone("models", p, err))
}

// shareModels has the history told which tasks another process has, once the group says so. Between two generations
// this process has none, and is likely to keep its own.
func (v *view) shareModels(g *kafkaio.Group, panes int) {
	v.History.Share(func(model string) int { return murmur.PartitionOf([]byte(model), panes) })
	has := g.Has
	g.Has = func(partitions []int, member bool) {
		for p := range panes {
			if member && !slices.Contains(partitions, p) {
				v.History.Leave(p)
			}
		}
		has(partitions, member)
	}
}

// register registers the model task of a partition. alerts is reminder.alerts.
func (s *modelStage) register(t *model.Task, p int, alerts *atomic.Int64) pipeline.Registered {
	task := inTurn{t, s.turns, &reminder{topic: &s.view.onTopic, log: s.Log, unread: &s.view.following,
		made: s.view.onTopic.again(), alerts: alerts, anew: &s.view.alerts.anew}}
	return pipeline.Registered{
		Task:   task,
		Report: task.report,
		Waiter: task,
		Skip:   t.Skip,
		Begin:  func(ctx context.Context) error { return s.Remains().BeginModel(ctx, p) },
	}
}

// inTurn is a model task that computes only when it has a turn. Panes of many models close at once, and the shards of
// the process must not wait until all of them are done.
type inTurn struct {
	*model.Task
	turns  chan struct{}
	remind *reminder
}

// report is the Report of the task.
func (t inTurn) report(caughtUp, active bool) func() {
	t.remind.caughtUp = t.remind.caughtUp || caughtUp
	show, fired := t.Task.Report(caughtUp, active), t.remind.fired
	return func() {
		if fired > t.remind.alerts.Load() { // in the outputs of this checkpoint, or of one before it
			t.remind.alerts.Store(fired)
		}
		show()
	}
}

// Take implements pipeline.Task.
func (t inTurn) Take(ctx context.Context, rec pipeline.Record) error {
	t.turns <- struct{}{}
	defer func() { <-t.turns }()
	return t.Task.Take(ctx, rec)
}

// Resume implements pipeline.Waiter.
func (t inTurn) Resume() error {
	t.turns <- struct{}{}
	defer func() { <-t.turns }()
	if err := t.remind.of(t.Task); err != nil {
		return err
	}
	return t.Task.Resume()
}

// reminder has a model task publish again what is in force, as far as the topics may have lost it: alerts when it has
// read all, since an older state may have one that was resolved, and once their topic was made again; calibrators once
// theirs was made again under the task. At its begin, of those that its state has, the ones of which the topic has no
// revision: it may show the latest only later, and a process that was frozen and wakes up would publish it twice.
type reminder struct {
	topic    *onTopic
	log      *slog.Logger
	unread   *atomic.Bool  // view.following
	caughtUp bool          // the task has been at its log's end
	anew     *atomic.Int64 // alertsTopic.anew
	fired    int64         // for which topic this attempt has published the alerts: anew + 1
	alerts   *atomic.Int64 // for which an attempt of this generation of the group has, and they are written
	made     int           // onTopic.made, for which the calibrators are there
	since    time.Time     // when another was first seen; 0 = none was

	restored map[string]bool // keys of what was in force when the task began; nil once the topic was asked for them
	began    time.Time
}

// lostAfter is how long after the topic was made again, or the task began, it must lack a calibrator: what has just
// been published is read back a moment later.
const lostAfter = 5 * time.Second

// of looks whether there is something to do. The task calls it between two records.
func (m *reminder) of(t *model.Task) error {
	if topic := m.anew.Load() + 1; m.caughtUp && m.fired < topic && m.alerts.Load() < topic {
		m.fired = topic
		model.FireAgain(t)
	}
	if err := m.atBegin(t); err != nil {
		return err
	}
	made := m.topic.again()
	switch {
	case made == m.made:
		return nil
	case m.since.IsZero():
		m.since = time.Now()
		return nil
	case time.Since(m.since) < lostAfter:
		return nil
	}
	m.made, m.since = made, time.Time{}
	return m.serveAgain(t, m.topic.lacks)
}

func (m *reminder) atBegin(t *model.Task) error {
	if m.began.IsZero() {
		m.began, m.restored = time.Now(), map[string]bool{}
		_, err := model.ServeAgain(t, func(key string, _ int) bool { m.restored[key] = true; return false })
		return err
	}
	if m.restored == nil || m.unread.Load() || time.Since(m.began) < lostAfter {
		return nil
	}
	had := m.restored
	m.restored = nil
	return m.serveAgain(t, func(key string, _ int) bool { return had[key] && m.topic.misses(key) })
}

func (m *reminder) serveAgain(t *model.Task, lacks func(key string, revision int) bool) error {
	n, err := model.ServeAgain(t, lacks)
	if n > 0 {
		m.log.Warn("the topic of calibrators had lost what is in force: it is published again", "task", t.Name(),
			"records", n)
	}
	return err
}
