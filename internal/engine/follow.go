package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
)

// follower reads the topics of which a process needs all records, from their start and for ever.
type follower struct {
	*deployment.Deployment
	view *view
	past *past
}

// tail reads topics from their start and for ever: every process needs all of their records.
func (f follower) tail(ctx context.Context, g *errgroup.Group, topics []kafkaio.Tailed, caughtUp func()) error {
	if err := kafkaio.Tail(ctx, g, f.TailSpec(), topics, caughtUp); err != nil {
		return kafkaclient.Explain(ctx, f.Config.Kafka, err)
	}
	return nil
}

// follow reads what every process needs: calibrators, heads, decisions. tuned is closed when it has all heads.
func (f follower) follow(ctx context.Context, g *errgroup.Group) (tuned <-chan struct{}, err error) {
	if err := f.followCalibrators(ctx, g); err != nil {
		return nil, err
	}
	if tuned, err = f.followTuning(ctx, g); err != nil {
		return nil, err
	}
	return tuned, f.followPast(ctx, g)
}

// followCalibrators reads the compacted calibrators topic into the table that shards apply and the history behind the
// page.
func (f follower) followCalibrators(ctx context.Context, g *errgroup.Group) error {
	return f.tail(ctx, g, []kafkaio.Tailed{{Topic: f.Config.Topics.Calibrators, Take: f.takeCalibrator,
		Anew: f.view.onTopic.anew}}, func() { f.view.following.Store(false) })
}

func (f follower) takeCalibrator(rec *pipeline.Record) error {
	c, err := record.DecodeCalibrators(rec.Value)
	if err != nil {
		return err
	}
	f.view.onTopic.has(string(rec.Key), c)
	return f.view.showRecord(c)
}

// followTuning reads the finetune and heads topics from their start and for ever. ready is closed when they have been
// read to their end: shards that started earlier would run heads late that were there in time.
func (f follower) followTuning(ctx context.Context, g *errgroup.Group) (ready <-chan struct{}, err error) {
	done := make(chan struct{})
	if !tuned(f.Config) {
		close(done)
		return done, nil
	}
	g.Go(func() error { f.view.Tuning.Retry(ctx); return nil })
	return done, f.tail(ctx, g, []kafkaio.Tailed{
		{Topic: f.Config.Topics.Finetune, Take: f.view.Tuning.ReadRequest},
		{Topic: f.Config.Topics.Heads, Take: f.view.Tuning.ReadRecord}}, func() { close(done) })
}

// pastTopic is a topic that the history is filled from.
type pastTopic struct {
	name   string
	decode registry.Decode
}

// pastTopics returns the topics that fill the history: the decisions topic, which has a copy of every decision, or
// else each decision's own topic; and the heads topic, which trainers write.
func (f follower) pastTopics() []pastTopic {
	t := f.Config.Topics
	all := []pastTopic{{t.Decisions, registry.FromDecisions}}
	if t.Decisions == "" {
		all = []pastTopic{{t.Calibrators, registry.FromTopic(record.DecisionCalibrator)},
			{t.Alerts, registry.FromTopic(record.DecisionAlert)}}
	}
	if tuned(f.Config) {
		if t.Decisions == "" {
			all = append(all, pastTopic{t.Finetune, registry.FromTopic(record.DecisionRequest)})
		}
		all = append(all, pastTopic{t.Heads, registry.FromHeads})
	}
	return slices.DeleteFunc(all, func(p pastTopic) bool { return p.name == "" })
}

// followPast fills the history.
func (f follower) followPast(ctx context.Context, g *errgroup.Group) error {
	past := f.past.Past
	if past == nil {
		return nil
	}
	meta, err := f.Client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{f.Config.Topics.Panes}})
	if err != nil {
		return fmt.Errorf("id of the cluster: %w", err)
	}
	fill, ctx := errgroup.WithContext(ctx)
	for _, t := range f.pastTopics() {
		if _, err := kafkaio.Partitions(ctx, f.Client, t.name); err != nil {
			return kafkaclient.Explain(ctx, f.Config.Kafka, err)
		}
		fill.Go(func() error {
			return kafkaio.EachPartition(ctx, f.TailSpec(), t.name, func(ctx context.Context, p int) error {
				open := func(next int64) registry.Source {
					return kafkaio.NewLog(f.TailSpec(), t.name, p, kafkaio.Range{Next: next})
				}
				past.Fill.Follow(ctx, registry.Place{Cluster: meta.ClusterID, Topic: t.name, Partition: p}, open,
					t.decode)
				return nil
			})
		})
	}
	fill.Go(func() error { past.Fill.Prune(ctx); return nil })
	g.Go(func() error { return errors.Join(fill.Wait(), past.Store.Close()) })
	return nil
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

// tuned reports whether a configuration trains or shadows heads.
func tuned(c *config.Config) bool { return c.Trigger.Enabled || c.Heads.Shadow }
