package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/web"
)

// refused writes a refused order about a calibrator to the decisions topic: who gave it, why, and why it was refused.
// If writing fails, the log has it; the order is refused anyway.
func (rt *Engine) refused(ctx context.Context, sink pipeline.Sink, o record.Order, reason error) {
	o.Schema, o.At, o.Refused = 1, record.Now(), reason.Error()
	rt.Log.Warn("order refused", "action", o.Action, "model", o.Model, "version", o.Version, "revision", o.Revision,
		"by", o.By, "why", o.Why, "reason", o.Refused)
	if rt.Config.Topics.Decisions == "" || o.Model == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, decisionlog.RecordTime)
	defer cancel()
	if err := decisionlog.WriteOrder(ctx, sink, o); err != nil {
		rt.Log.Warn("the history does not have a refused order", "id", o.ID, "err", err)
	}
}

// OpenPast opens the history, if one is configured.
func (rt *Engine) OpenPast() error {
	if rt.Config.History.Store == registry.Off {
		return nil
	}
	store, err := decisionlog.Open(rt.Config.History, rt.HistoryFile())
	if err != nil {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.Past = &decisionlog.Store{Store: store, Fill: registry.NewFiller(store, rt.Log)}
	return nil
}

// pastNow returns the history; nil if there is none or it is not open yet, since the status may be asked early.
func (rt *Engine) pastNow() *decisionlog.Store {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.Past
}

// HistoryFile returns the file of the history's database. Its name includes the host's: machines that share the work
// directory have one each.
func (rt *Engine) HistoryFile() string {
	if rt.Config.History.Path != "" {
		return rt.Config.History.Path
	}
	return filepath.Join(rt.workDir(), "history-"+rt.Config.Group+"@"+url.QueryEscape(Hostname())+".db")
}

// pastTopic is a topic that the history is filled from.
type pastTopic struct {
	name   string
	decode registry.Decode
}

// pastTopics returns the topics that fill the history: the decisions topic, which has a copy of every decision, or
// else each decision's own topic; and the heads topic, which trainers write.
func (r *KafkaRun) pastTopics() []pastTopic {
	t := r.Config.Topics
	all := []pastTopic{{t.Decisions, registry.FromDecisions}}
	if t.Decisions == "" {
		all = []pastTopic{{t.Calibrators, registry.FromTopic(record.DecisionCalibrator)},
			{t.Alerts, registry.FromTopic(record.DecisionAlert)}}
	}
	if r.tuned() {
		if t.Decisions == "" {
			all = append(all, pastTopic{t.Finetune, registry.FromTopic(record.DecisionRequest)})
		}
		all = append(all, pastTopic{t.Heads, registry.FromHeads})
	}
	return slices.DeleteFunc(all, func(p pastTopic) bool { return p.name == "" })
}

// followPast fills the history.
func (r *KafkaRun) followPast(ctx context.Context, g *errgroup.Group) error {
	if r.Past == nil {
		return nil
	}
	meta, err := r.Client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{r.Config.Topics.Panes}})
	if err != nil {
		return fmt.Errorf("id of the cluster: %w", err)
	}
	fill, ctx := errgroup.WithContext(ctx)
	for _, t := range r.pastTopics() {
		if _, err := kafkaio.Partitions(ctx, r.Client, t.name); err != nil {
			return kafkaclient.Explain(ctx, r.Config.Kafka, err)
		}
		fill.Go(func() error {
			return kafkaio.EachPartition(ctx, r.tailSpec(), t.name, func(ctx context.Context, p int) error {
				open := func(next int64) registry.Source {
					return kafkaio.NewLog(r.tailSpec(), t.name, p, kafkaio.Range{Next: next})
				}
				r.Past.Fill.Follow(ctx, registry.Place{Cluster: meta.ClusterID, Topic: t.name, Partition: p}, open,
					t.decode)
				return nil
			})
		})
	}
	fill.Go(func() error { r.Past.Fill.Prune(ctx); return nil })
	g.Go(func() error { return errors.Join(fill.Wait(), r.Past.Store.Close()) })
	return nil
}

// webPast returns the history for the API; nil if there is none.
func (rt *Engine) webPast() web.Past {
	if rt.Past == nil {
		return nil
	}
	return rt.Past
}
