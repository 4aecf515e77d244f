package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/serve"
	"github.com/plumbline/plumbline/trainer/service"
)

// tuning is what the finetune and heads topics say: for the page, and for the shards, which run the heads.
type tuning struct {
	log   *slog.Logger
	heads *operators.Heads // nil: nobody runs them

	mu       sync.Mutex
	queue    *service.Queue
	verdicts map[string]record.Verdict // by head id
	orders   map[string]orderSeen
	seq      int // of orders
}

// orderSeen is an order with its place among all orders.
type orderSeen struct {
	record.Order
	seq int
}

func newTuning(heads *operators.Heads, log *slog.Logger) *tuning {
	return &tuning{log: log, heads: heads, queue: service.NewQueue(), verdicts: map[string]record.Verdict{}, orders: map[string]orderSeen{}}
}

// request takes a record of the finetune topic.
func (t *tuning) request(value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.TakeRequest(value, time.Now())
}

// record takes a record of the heads topic.
func (t *tuning) record(value []byte) error {
	if len(value) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var kind struct{ Kind, ID string }
	if err := json.Unmarshal(value, &kind); err != nil {
		return fmt.Errorf("heads record: %w", err)
	}
	switch kind.Kind {
	case record.HeadVerdict:
		return t.verdict(value)
	case record.HeadOrder:
		var o record.Order
		if err := json.Unmarshal(value, &o); err != nil {
			return fmt.Errorf("order of %s: %w", kind.ID, err)
		}
		t.seq++
		t.orders[o.ID] = orderSeen{o, t.seq}
		return nil
	}
	had := t.queue.Job(kind.ID)
	first := had == nil || had.Result == nil
	if err := t.queue.Take(value, time.Now()); err != nil {
		return err
	}
	if j := t.queue.Job(kind.ID); first && j.Result != nil {
		return t.trained(j.Result)
	}
	return nil
}

// trained has the shards run a head.
func (t *tuning) trained(h *record.Head) error {
	if t.heads == nil || h.Outcome != record.OutcomeTrained {
		return nil
	}
	hd, err := service.Weights(*h)
	if err != nil {
		return err
	}
	model, err := serve.New(hd)
	if err != nil {
		return fmt.Errorf("head %s: %w", h.ID, err)
	}
	from, err := parseTime(h.EffectiveFrom)
	if err != nil {
		return fmt.Errorf("head %s: effective_from: %w", h.ID, err)
	}
	h.Weights = nil // the copy for the page needs none
	t.log.Info("head", "id", h.ID, "shadow_from", h.EffectiveFrom, "why", h.Why)
	return t.heads.Put(arrowio.ModelKey{Model: h.Model, Version: h.Version}, h.Number, from, model)
}

func (t *tuning) verdict(value []byte) error {
	var v record.Verdict
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("verdict: %w", err)
	}
	if old, ok := t.verdicts[v.ID]; ok && old.DecidedAt > v.DecidedAt {
		return nil // a repeat
	}
	t.verdicts[v.ID] = v
	if t.heads == nil || v.EffectiveFrom == "" {
		return nil
	}
	until, err := parseTime(v.EffectiveFrom)
	if err != nil {
		return fmt.Errorf("verdict on %s: effective_from: %w", v.ID, err)
	}
	t.heads.Stop(arrowio.ModelKey{Model: v.Model, Version: v.Version}, v.Number, until)
	return nil
}

// tuned says that the configuration has the loop go beyond refits.
func (rt *engine) tuned() bool { return rt.cfg.Trigger.Enabled || rt.cfg.Heads.Shadow }

// followTuning reads the finetune and heads topics, from their start and for ever. ready is closed when they have been read
// to their end: shards that began before would take up heads late that were there in time.
func (r *kafkaRun) followTuning(ctx context.Context, g *errgroup.Group) (ready <-chan struct{}, err error) {
	done := make(chan struct{})
	if !r.tuned() {
		close(done)
		return done, nil
	}
	return done, followTopics(ctx, g, r.client, r.cfg.Kafka.FetchMax, r.log, []followed{
		{r.cfg.Topics.Finetune, r.tuning.request}, {r.cfg.Topics.Heads, r.tuning.record}}, func() { close(done) })
}

// followed is a topic and who takes its records; errors are logged, with the record's place.
type followed struct {
	topic string
	take  func(value []byte) error
}

// followTopics reads topics from their start and for ever; caughtUp is called once, when all have been read to their end.
func followTopics(ctx context.Context, g *errgroup.Group, client *kafka.Client, fetchMax int, log *slog.Logger, topics []followed, caughtUp func()) error {
	var left atomic.Int32
	left.Store(1)
	end := func() {
		if left.Add(-1) == 0 {
			caughtUp()
		}
	}
	for _, f := range topics {
		if f.topic == "" {
			continue
		}
		n, err := kafkaio.Partitions(ctx, client, f.topic)
		if err != nil {
			return noTopic(err)
		}
		left.Add(int32(n)) //nolint:gosec // a topic's partitions
		for p := range n {
			src := kafkaio.NewSource(kafkaio.Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Panes: f.topic}, Partition: p,
				Next: map[pipeline.Input]int64{pipeline.Panes: -1}, MaxBytes: fetchMax, IdleTimeout: time.Millisecond, Log: log})
			g.Go(func() error {
				defer src.Close()
				return followOne(ctx, src, f.take, log, end)
			})
		}
	}
	end()
	return nil
}

func followOne(ctx context.Context, src pipeline.Source, take func([]byte) error, log *slog.Logger, end func()) error {
	for first := true; ; {
		rec, err := src.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Idle {
			if first {
				end()
				first = false
			}
			continue
		}
		if err := take(rec.Value); err != nil {
			log.Error("record cannot be used", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "err", err)
		}
	}
}

// tuningSpecs are the model tasks' part of the configuration.
func tuningSpecs(c *config.Config) (model.TriggerSpec, model.JudgeSpec) {
	t, h := c.Trigger, c.Heads
	return model.TriggerSpec{Enabled: t.Enabled, Recipe: t.Recipe, Rows: t.Rows, MinRows: t.MinRows, ReferenceRows: t.ReferenceRows, MaxECE: t.MaxECE,
			MaxAccDrop: t.MaxAccDrop, MaxAURCRise: t.MaxAURCRise, Z: t.Z, For: int64(t.For), DataRows: t.DataRows, Cooldown: int64(t.Cooldown), Budget: t.Budget,
			BudgetPeriod: int64(t.BudgetPeriod), ShadowAfter: int64(t.ShadowAfter), Deadline: int64(t.Deadline)},
		model.JudgeSpec{Enabled: h.Shadow, Alpha: h.Alpha, NLLBound: h.NLLBound, MinRows: h.MinRows, MaxRows: h.MaxRows, MaxECERise: h.MaxECERise,
			MaxAccDrop: h.MaxAccDrop, MaxAURCRis: h.MaxAURCRise, Watch: int64(h.Watch)}
}
