package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/web"
)

// orderTaker writes what people decide about calibrators to the panes topic, keyed by model: the model task obeys it in
// the order of that log, here or in another process.
type orderTaker struct {
	*engine
	sink pipeline.Sink
}

// orderAnswer says that an order is on its way; the list of calibrators shows what came of it.
type orderAnswer struct {
	ID      string `json:"id"`
	Action  string `json:"action"`
	Model   string `json:"model"`
	Version string `json:"version"`
	By      string `json:"by"`
	Why     string `json:"why"`
}

// Order implements web.Orders.
func (t orderTaker) Order(ctx context.Context, w web.Order) (any, error) {
	o := &pipeline.Order{ID: pipeline.NewOrderID(), Action: w.Action, Model: w.Model, Version: w.Version, Revision: w.Revision, Calibrator: w.Calibrator, By: w.By, Why: w.Why}
	if o.Action != pipeline.ActionPublish {
		o.Calibrator = nil
	}
	if err := t.complete(o); err != nil {
		return nil, fmt.Errorf("%w: %w", web.ErrOrder, err)
	}
	m := pipeline.Message{Stream: pipeline.StreamPanes, Partition: -1, Key: []byte(o.Model), Value: pipeline.AppendOrder(nil, o)}
	if err := t.sink.Write(ctx, []pipeline.Message{m}); err != nil {
		return nil, err
	}
	return orderAnswer{hex.EncodeToString(o.ID[:]), o.Action, o.Model, o.Version, o.By, o.Why}, nil
}

// complete fills what the order leaves out from what this process knows, and refuses what it knows to be wrong.
func (t orderTaker) complete(o *pipeline.Order) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Version == "" {
		versions := t.versions(o.Model)
		if len(versions) != 1 {
			return fmt.Errorf("version: must be named, model %q has %q here", o.Model, strings.Join(versions, ", "))
		}
		o.Version = versions[0]
	}
	if o.Action == pipeline.ActionPublish {
		_, err := calibrator.Decode(o.Calibrator)
		return err
	}
	if o.Revision == 0 || o.Action == pipeline.ActionUnpin {
		return nil
	}
	for _, c := range t.history.Calibrators(o.Model, o.Version, 0) {
		if c.Published && c.Revision == o.Revision {
			o.Calibrator = c.Calibrator
			return nil
		}
	}
	return fmt.Errorf("revision %d of %s/%s is not in the history of this process: publish it from a file", o.Revision, o.Model, o.Version)
}

// versions are those of a model that have snapshots or calibrators here.
func (t orderTaker) versions(model string) (out []string) {
	for _, s := range t.history.Series() {
		if s.Model == model {
			out = append(out, s.Version)
		}
	}
	for _, c := range t.history.Calibrators(model, "", 0) {
		out = append(out, c.Version)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
