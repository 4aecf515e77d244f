package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// tail reads topics from their start and for ever: every process needs all of their records.
func (r *KafkaRun) tail(ctx context.Context, g *errgroup.Group, topics []kafkaio.Tailed, caughtUp func()) error {
	if err := kafkaio.Tail(ctx, g, r.tailSpec(), topics, caughtUp); err != nil {
		return kafkaclient.Explain(ctx, r.Config.Kafka, err)
	}
	return nil
}

func (r *KafkaRun) tailSpec() kafkaio.TailSpec {
	return kafkaio.TailSpec{Client: r.Client, MaxBytes: r.Config.Kafka.FetchMax, Log: r.Log}
}

// follow reads what every process needs: calibrators, heads, decisions. tuned is closed when it has all heads.
func (r *KafkaRun) follow(ctx context.Context, g *errgroup.Group) (tuned <-chan struct{}, err error) {
	if err := r.followCalibrators(ctx, g); err != nil {
		return nil, err
	}
	if tuned, err = r.followTuning(ctx, g); err != nil {
		return nil, err
	}
	return tuned, r.followPast(ctx, g)
}

// followCalibrators reads the compacted calibrators topic into the table that shards apply and the history behind the
// page.
func (r *KafkaRun) followCalibrators(ctx context.Context, g *errgroup.Group) error {
	return r.tail(ctx, g, []kafkaio.Tailed{{Topic: r.Config.Topics.Calibrators, Take: r.takeCalibrator,
		Anew: r.onTopic.anew}}, func() { r.following.Store(false) })
}

func (r *KafkaRun) takeCalibrator(rec *pipeline.Record) error {
	c, err := record.DecodeCalibrators(rec.Value)
	if err != nil {
		return err
	}
	r.onTopic.has(string(rec.Key), c)
	return r.showRecord(c)
}

// onTopic is what the calibrators topic says: by key the latest revision. made is how often it was deleted and made
// again under this process.
type onTopic struct {
	mu        sync.Mutex
	made      int
	revisions map[string]int
}

func (f *onTopic) has(key string, rec any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revisions == nil {
		f.revisions = map[string]int{}
	}
	switch c := rec.(type) {
	case *record.Calibrator:
		f.revisions[key] = max(f.revisions[key], c.Revision)
	case *record.TopCorrection:
		f.revisions[key] = max(f.revisions[key], c.Revision)
	}
}

// anew notes that the topic was deleted and made again. What comes in it of this process's tasks comes from them.
func (f *onTopic) anew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made, f.revisions = f.made+1, nil
}

// again returns made.
func (f *onTopic) again() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// lacks reports whether the topic has neither a revision of a key nor a later one.
func (f *onTopic) lacks(key string, revision int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	has, ok := f.revisions[key]
	return !ok || has < revision
}

// misses reports whether the topic has nothing of a key.
func (f *onTopic) misses(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.revisions[key]
	return !ok
}

// reminder has a model task publish again what is in force, as far as the topics may have lost it: alerts when it has
// read all, since an older state may have one that was resolved; calibrators once their topic was made again under the
// task. At its begin, of those that its state has, the ones of which the topic has no revision: it may show the latest
// only later, and a process that was frozen and wakes up would publish it twice.
type reminder struct {
	topic    *onTopic
	log      *slog.Logger
	unread   *atomic.Bool // Engine.following
	caughtUp bool         // the task has been at its log's end
	fired    bool         // this attempt has published the alerts
	alerts   *atomic.Bool // an attempt of this generation of the group has, and they are written
	made     int          // onTopic.made, for which the calibrators are there
	since    time.Time    // when another was first seen; 0 = none was

	restored map[string]bool // keys of what was in force when the task began; nil once the topic was asked for them
	began    time.Time
}

// lostAfter is how long after the topic was made again, or the task began, it must lack a calibrator: what has just
// been published is read back a moment later.
const lostAfter = 5 * time.Second

// of looks whether there is something to do. The task calls it between two records.
func (m *reminder) of(t *model.Task) error {
	if m.caughtUp && !m.fired && !m.alerts.Load() {
		m.fired = true
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
