package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/web"
)

// webHeads is what the page and the API see of heads.
type webHeads struct {
	rt     *engine
	client *kafka.Client // nil: orders cannot be written
}

// Heads implements web.Heads.
func (w webHeads) Heads() any {
	v := w.rt.tuning.View()
	for i := range v.Heads {
		v.Heads[i].Lost = v.Heads[i].Silent >= w.rt.cfg.Trainer.LostAfter.Seconds()
	}
	return v
}

// HeadOrder implements web.Heads.
func (w webHeads) HeadOrder(ctx context.Context, o web.HeadOrder) (any, error) {
	kind := record.HeadOrder
	if o.Action == "cancel" {
		kind = record.HeadCancel
	}
	order := record.Order{Schema: 1, Kind: kind, ID: o.ID, Action: o.Action, By: o.By, Why: o.Why, At: pipeline.Format(time.Now().UnixNano())}
	if err := w.rt.tuning.Allows(order); err != nil {
		order.Refused = err.Error()
		if herr := decisionlog.RecordOrder(ctx, w.client, w.rt.cfg, order); herr != nil {
			w.rt.log.Warn("the history does not have a refused order", "id", order.ID, "by", order.By, "err", herr)
		}
		return nil, fmt.Errorf("%w: %w", web.ErrOrder, err)
	}
	return order, heads.PublishOrder(ctx, w.client, w.rt.cfg, order, func(s string) { w.rt.log.Warn(s, "id", order.ID) })
}

// headsAPI is nil where this process follows no heads.
func (rt *engine) headsAPI() web.Heads {
	if !rt.tuned() {
		return nil
	}
	client, _, err := kafkaclient.New(rt.cfg.Kafka)
	if err != nil {
		rt.log.Error("orders about heads", "err", err)
		return nil
	}
	return webHeads{rt, client}
}
