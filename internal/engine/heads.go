package engine

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/web"
)

// webHeads gives the page and the API access to heads.
type webHeads struct {
	rt     *Engine
	client *kafka.Client // nil: orders cannot be written
}

// Heads implements web.Heads.
func (w webHeads) Heads() any {
	v := w.rt.Tuning.Current()
	for i := range v.Heads {
		v.Heads[i].Lost = v.Heads[i].Silent >= w.rt.Config.Trainer.LostAfter.Seconds()
	}
	return v
}

// HeadOrder implements web.Heads.
func (w webHeads) HeadOrder(ctx context.Context, o web.HeadOrder) (any, error) {
	kind := record.HeadOrder
	if o.Action == "cancel" {
		kind = record.HeadCancel
	}
	order := record.Order{Schema: 1, Kind: kind, ID: o.ID, Action: o.Action, By: o.By, Why: o.Why,
		At: record.Now()}
	if err := w.rt.Tuning.Allows(order); err != nil {
		order.Refused = err.Error()
		if herr := decisionlog.RecordOrder(ctx, w.client, w.rt.Config, order); herr != nil {
			w.rt.Log.Warn("the history does not have a refused order", "id", order.ID, "by", order.By, "err", herr)
		}
		return nil, fmt.Errorf("%w: %w", web.ErrOrder, err)
	}
	return order, heads.PublishOrder(ctx, w.client, w.rt.Config, order,
		func(s string) { w.rt.Log.Warn(s, "id", order.ID) })
}

// headsAPI returns the API of heads; nil if this process follows none.
func (rt *Engine) headsAPI() web.Heads {
	if !rt.tuned() {
		return nil
	}
	client, _, err := kafkaclient.New(rt.Config.Kafka)
	if err != nil {
		rt.Log.Error("orders about heads", "err", err)
		return nil
	}
	return webHeads{rt, client}
}

// tuned reports whether the configuration trains or shadows heads.
func (rt *Engine) tuned() bool { return rt.Config.Trigger.Enabled || rt.Config.Heads.Shadow }

// followTuning reads the finetune and heads topics from their start and for ever. ready is closed when they have been
// read to their end: shards that started earlier would run heads late that were there in time.
func (r *KafkaRun) followTuning(ctx context.Context, g *errgroup.Group) (ready <-chan struct{}, err error) {
	done := make(chan struct{})
	if !r.tuned() {
		close(done)
		return done, nil
	}
	return done, r.tail(ctx, g, []kafkaio.Tailed{
		{Topic: r.Config.Topics.Finetune, Take: r.Tuning.ReadRequest},
		{Topic: r.Config.Topics.Heads, Take: r.Tuning.ReadRecord}}, func() { close(done) })
}
