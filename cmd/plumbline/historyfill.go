package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/web"
)

// decided are the streams of which the decisions topic gets a copy, and the kind of their records.
var decided = map[pipeline.Stream]string{
	pipeline.StreamCalibrators: record.DecisionCalibrator, pipeline.StreamDecisions: record.DecisionCalibrator, pipeline.StreamAlerts: record.DecisionAlert,
	pipeline.StreamFinetune: record.DecisionRequest, pipeline.StreamHeads: record.DecisionVerdict,
}

// recorder is a sink that writes what was decided to the decisions topic too. The copy is made of the same bytes in the same
// call: it is as durable, and comes again where the original does.
type recorder struct{ pipeline.Sink }

// Write implements pipeline.Sink.
func (s recorder) Write(ctx context.Context, ms []pipeline.Message) error {
	out := ms[:len(ms):len(ms)]
	for i := range ms {
		kind, ok := decided[ms[i].Stream]
		if !ok {
			continue
		}
		c, err := decisionCopy(kind, &ms[i])
		if err != nil {
			return err
		}
		out = append(out, c)
	}
	return s.Sink.Write(ctx, out)
}

// decisionCopy is the entry of the decisions topic for an output: in the partition of its model, so that all that was decided
// about a model has one order.
func decisionCopy(kind string, m *pipeline.Message) (pipeline.Message, error) {
	var of struct{ Model, Version string }
	if err := json.Unmarshal(m.Value, &of); err != nil {
		return pipeline.Message{}, fmt.Errorf("copy of %s %q: %w", m.Stream, m.Key, err)
	}
	value, err := record.NewDecision(kind, of.Model, of.Version, m.Value)
	return pipeline.Message{Stream: pipeline.StreamHistory, Partition: -1, Key: []byte(of.Model), Value: value, Time: m.Time}, err
}

// recordTime bounds the wait for the brokers to take an order for the history: whoever gave it waits too.
const recordTime = 5 * time.Second

// recordOrder writes an order about a head to the decisions topic: the heads topic keeps the latest of a head only, and none that
// was refused.
func recordOrder(ctx context.Context, client *kafka.Client, cfg config.Config, o record.Order) error {
	if cfg.Topics.Decisions == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	sink, err := kafkaio.NewSink(ctx, client, map[pipeline.Stream]string{pipeline.StreamHistory: cfg.Topics.Decisions}, cfg.Kafka.MessageMax, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return writeOrder(ctx, sink, o)
}

// writeOrder writes an order to a sink that has the decisions topic.
func writeOrder(ctx context.Context, sink pipeline.Sink, o record.Order) error {
	model, version := o.Model, o.Version
	if model == "" {
		model, version = registry.HeadNames(o.ID) // not in the record, which is the heads topic's
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	value, err := record.NewDecision(record.DecisionOrder, model, version, body)
	if err != nil {
		return err
	}
	return sink.Write(ctx, []pipeline.Message{{Stream: pipeline.StreamHistory, Partition: -1, Key: []byte(model), Value: value}})
}

// refused writes an order about a calibrator that was not given to the decisions topic, with who, why, and why not. Where that fails the
// log says so: the order is refused all the same.
func (rt *engine) refused(ctx context.Context, sink pipeline.Sink, o record.Order, reason error) {
	o.Schema, o.At, o.Refused = 1, pipeline.Format(time.Now().UnixNano()), reason.Error()
	rt.log.Warn("order refused", "action", o.Action, "model", o.Model, "version", o.Version, "revision", o.Revision, "by", o.By, "why", o.Why, "reason", o.Refused)
	if rt.cfg.Topics.Decisions == "" || o.Model == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := writeOrder(ctx, sink, o); err != nil {
		rt.log.Warn("the history does not have a refused order", "id", o.ID, "err", err)
	}
}

// past is the history of this process: the database, and what fills it.
type past struct {
	store *registry.Store
	fill  *registry.Filler
}

// openPast opens the history where there is one.
func (rt *engine) openPast() error {
	if rt.cfg.History.Store == config.HistoryOff {
		return nil
	}
	store, err := openRegistry(rt.cfg, rt.historyFile())
	if err != nil {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.past = &past{store, registry.NewFiller(store, rt.log)}
	return nil
}

// pastNow is the history; nil where there is none, and until it is open: the status may be asked before.
func (rt *engine) pastNow() *past {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.past
}

// historyFile is the file of a database in a file. Machines that share the work directory have one each.
func (rt *engine) historyFile() string {
	if rt.cfg.History.Path != "" {
		return rt.cfg.History.Path
	}
	return filepath.Join(rt.workDir(), "history-"+rt.cfg.Group+"@"+url.QueryEscape(hostname())+".db")
}

func openRegistry(cfg config.Config, file string) (*registry.Store, error) {
	h := cfg.History
	dsn, err := h.DSN()
	if err != nil {
		return nil, err
	}
	return registry.Open(registry.Config{Store: h.Store, Path: file, DSN: dsn, Rows: h.Rows, MaxAge: h.MaxAge, Timeout: h.Timeout})
}

// pastTopic is a topic that the history is filled from.
type pastTopic struct {
	name   string
	decode registry.Decode
	once   bool // to its end as it is at the start: what comes after is on the decisions topic too
}

// pastTopics are the decisions topic, those with what was decided before there was one, and that of the heads, which trainers
// write.
func (r *kafkaRun) pastTopics() []pastTopic {
	t := r.cfg.Topics
	once := t.Decisions != ""
	all := []pastTopic{{t.Decisions, registry.FromDecisions, false}, {t.Calibrators, registry.FromTopic(record.DecisionCalibrator), once},
		{t.Alerts, registry.FromTopic(record.DecisionAlert), once}}
	if r.tuned() {
		all = append(all, pastTopic{t.Finetune, registry.FromTopic(record.DecisionRequest), once}, pastTopic{t.Heads, registry.FromHeads, false})
	}
	return slices.DeleteFunc(all, func(p pastTopic) bool { return p.name == "" })
}

// followPast fills the history.
func (r *kafkaRun) followPast(ctx context.Context, g *errgroup.Group) error {
	if r.past == nil {
		return nil
	}
	meta, err := r.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{r.cfg.Topics.Panes}})
	if err != nil {
		return fmt.Errorf("id of the cluster: %w", err)
	}
	fill, ctx := errgroup.WithContext(ctx)
	for _, t := range r.pastTopics() {
		n, err := kafkaio.Partitions(ctx, r.client, t.name)
		if err != nil {
			return noTopic(err)
		}
		for p := range n {
			until := int64(-1)
			if t.once {
				if _, until, err = kafkaio.Bounds(ctx, r.client, t.name, p); err != nil {
					return err
				}
			}
			open := func(next int64) pipeline.Source { return r.pastSource(t.name, p, next, until) }
			fill.Go(func() error {
				r.past.fill.Follow(ctx, registry.Place{Cluster: meta.ClusterID, Topic: t.name, Partition: p}, open, t.decode)
				return nil
			})
		}
	}
	fill.Go(func() error { r.past.fill.Prune(ctx); return nil })
	g.Go(func() error { return errors.Join(fill.Wait(), r.past.store.Close()) })
	return nil
}

func (r *kafkaRun) pastSource(topic string, p int, next, until int64) pipeline.Source {
	if next == 0 {
		next = -1 // wherever the log begins
	}
	return kafkaio.NewSource(kafkaio.Spec{Client: r.client, Topics: map[pipeline.Input]string{pipeline.Panes: topic}, Partition: p,
		Next: map[pipeline.Input]int64{pipeline.Panes: next}, Until: map[pipeline.Input]int64{pipeline.Panes: until},
		MaxBytes: r.cfg.Kafka.FetchMax, IdleTimeout: time.Millisecond, Log: r.log})
}

// pastPage is an answer of the history.
type pastPage struct {
	Entries []registry.Entry `json:"entries"`
	Next    string           `json:"next,omitempty"`
	// Behind is how many offsets of the topics are not in the database; -1 = not known.
	Behind int64 `json:"behind"`
}

// Past implements web.Past.
func (p *past) Past(ctx context.Context, q web.PastQuery) (any, error) {
	behind := p.fill.Status().Behind // before the database is read
	page, err := p.store.Query(ctx, registry.Query{Model: q.Model, Version: q.Version, Kinds: q.Kinds, Since: q.Since, Until: q.Until, Limit: q.Limit,
		Cursor: q.Cursor, Records: q.Records})
	if errors.Is(err, registry.ErrCursor) {
		return nil, fmt.Errorf("%w: %w", web.ErrQuery, err)
	}
	return pastPage{page.Entries, page.Next, behind}, err
}

// webPast is what the API asks; nil where there is no history.
func (rt *engine) webPast() web.Past {
	if rt.past == nil {
		return nil
	}
	return rt.past
}

// historyMetrics collects how the history does.
type historyMetrics struct{ *past }

var (
	descHistoryUp      = prometheus.NewDesc("plumbline_history_up", "1 if the last writes to the database of the history went well.", nil, nil)
	descHistoryBehind  = prometheus.NewDesc("plumbline_history_behind_offsets", "Offsets of the topics that are not in the database yet; absent while not known.", nil, nil)
	descHistoryRecords = prometheus.NewDesc("plumbline_history_records_total", "Records for the history, by what became of them: stored, repeated (there already), unreadable, pruned.", []string{"outcome"}, nil)
	descHistoryFailed  = prometheus.NewDesc("plumbline_history_failures_total", "Tries to write to the database that failed; each is made again.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c historyMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descHistoryUp
	ch <- descHistoryBehind
	ch <- descHistoryRecords
	ch <- descHistoryFailed
}

// Collect implements prometheus.Collector.
func (c historyMetrics) Collect(ch chan<- prometheus.Metric) {
	st, up := c.fill.Status(), 0.0
	if st.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(descHistoryUp, prometheus.GaugeValue, up)
	if st.Behind >= 0 {
		ch <- prometheus.MustNewConstMetric(descHistoryBehind, prometheus.GaugeValue, float64(st.Behind))
	}
	for outcome, n := range map[string]int64{"stored": c.fill.Stored.Load(), "repeated": c.fill.Repeated.Load(), "unreadable": c.fill.Unreadable.Load(),
		"pruned": c.fill.Pruned.Load()} {
		ch <- prometheus.MustNewConstMetric(descHistoryRecords, prometheus.CounterValue, float64(n), outcome)
	}
	ch <- prometheus.MustNewConstMetric(descHistoryFailed, prometheus.CounterValue, float64(c.fill.Failures.Load()))
}
