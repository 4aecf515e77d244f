package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// CountOrders counts the orders of people that were obeyed, CountBadOrders those that could not be.
const (
	CountOrders    = "orders"
	CountBadOrders = "orders_rejected"
)

// keptOrders is how many orders a version remembers, to know a repeat.
const keptOrders = 64

// pin is who keeps what is in force.
type pin struct {
	by, why string
	at      int64
}

// order is an order that waits for its place: before a label pane.
type order struct {
	pane int64
	c    *pipeline.Order
}

// command takes an order. Its place is after all label panes that are closed: where the model waits for a fit, they are
// processed first.
func (t *ModelTask) command(c *pipeline.Order) error {
	m := t.models[c.Model]
	if m == nil || t.reached == minPane {
		return t.refuse(c, t.reached*t.cfg.Pane, "the model has no label pane yet")
	}
	m.orders = append(m.orders, order{t.reached, c})
	return t.advance(m, t.reached)
}

// refuse counts an order that cannot be obeyed, and writes that down: whoever gave it reads it in the log and in the history. It is
// in no state and in no ledger, since the model or version may not be known.
func (t *ModelTask) refuse(c *pipeline.Order, now int64, why string) error {
	t.counts.Add(CountBadOrders, 1)
	t.log.Error("order cannot be obeyed", "action", c.Action, "model", c.Model, "version", c.Version, "by", c.By, "why", why)
	if t.reached == minPane {
		return nil // there is no event time yet that it could be of
	}
	at := pipeline.Format(now)
	m, err := pipeline.NewMessage(pipeline.StreamDecisions, c.Model+"/"+c.Version, now, &record.Calibrator{Schema: 1, Model: c.Model, Version: c.Version, Reason: reasonManual, Outcome: "refused: " + c.Action + " by " + c.By + ": " + why,
		DecidedAt: at, EffectiveFrom: at, By: c.By, Why: c.Why, Build: t.cfg.Build})
	if err != nil {
		return fmt.Errorf("record of a refused order: %w", err)
	}
	t.out = append(t.out, m)
	return nil
}

// obey carries out the orders whose place is at or before a label pane.
func (t *ModelTask) obey(m *model, pane int64) error {
	for len(m.orders) > 0 && m.orders[0].pane <= pane {
		o := m.orders[0]
		m.orders = m.orders[1:]
		v, why := m.addressed(o.c.Version)
		if v == nil {
			if err := t.refuse(o.c, o.pane*t.cfg.Pane, why); err != nil {
				return err
			}
			continue
		}
		if err := t.obeyOne(v, o.c, o.pane*t.cfg.Pane); err != nil {
			return err
		}
	}
	return nil
}

// addressed is the version that an order means.
func (m *model) addressed(name string) (v *version, why string) {
	if name != "" {
		if v = m.versions[name]; v == nil {
			return nil, "the model has no such version"
		}
		return v, ""
	}
	if len(m.versions) != 1 {
		return nil, fmt.Sprintf("the model has %d versions: name one", len(m.versions))
	}
	for _, v = range m.versions {
	}
	return v, ""
}

func (t *ModelTask) obeyOne(v *version, c *pipeline.Order, now int64) error {
	if slices.Contains(v.refit.orders, c.ID) {
		return nil
	}
	k := v.key("", &t.cfg)
	d := record.Calibrator{Reason: reasonManual, By: c.By, Why: c.Why}
	var r *rival // to be put into force
	switch c.Action {
	case pipeline.ActionPublish, pipeline.ActionPin, pipeline.ActionRollback:
		var err error
		if r, err = v.wanted(c); err != nil {
			return t.refuse(c, now, err.Error())
		}
	}
	t.counts.Add(CountOrders, 1)
	v.refit.orders = append(v.refit.orders, c.ID)
	v.refit.orders = v.refit.orders[max(0, len(v.refit.orders)-keptOrders):]
	switch c.Action {
	case pipeline.ActionPin:
		v.refit.pin = &pin{c.By, c.Why, now}
	case pipeline.ActionUnpin:
		v.refit.pin = nil
	}
	if v.refit.trial != nil && c.Action != pipeline.ActionUnpin {
		if err := t.endTrial(v, k, c.Action+" by "+c.By, now); err != nil {
			return err
		}
	}
	if r == nil {
		d.Outcome = c.Action + " by " + c.By
		return t.remark(v, k, &d, now)
	}
	d.Outcome, d.Method = "published: "+c.Action+" by "+c.By, r.cal.Method()
	if c.Action != pipeline.ActionPublish {
		d.Restores = &r.revision
	}
	return t.putInForce(v, k, &d, r.cal, r.encoded, now)
}

// wanted is the calibrator that an order puts into force; nil where what is in force stays.
func (v *version) wanted(c *pipeline.Order) (*rival, error) {
	if len(c.Calibrator) > 0 {
		cal, err := calibrator.Decode(c.Calibrator)
		if err != nil {
			return nil, err
		}
		if !calibrator.Fits(cal, v.K) {
			return nil, fmt.Errorf("the calibrator is not one for K = %d", v.K)
		}
		return &rival{revision: c.Revision, cal: cal, encoded: c.Calibrator}, nil
	}
	if c.Action == pipeline.ActionPin && (c.Revision == 0 || c.Revision == v.InForceRevision()) {
		return nil, nil
	}
	if c.Revision > 0 {
		for _, f := range v.Calibrators {
			if f.Revision == c.Revision && f.Share == 0 {
				return &rival{revision: f.Revision, cal: f.Cal, encoded: f.Encoded}, nil
			}
		}
		return nil, fmt.Errorf("revision %d is not at hand: send its calibrator with the order", c.Revision)
	}
	if v.refit.guard == nil {
		return nil, fmt.Errorf("nothing was published that could be rolled back")
	}
	return v.refit.guard.rivals[0], nil
}

// remark writes down a pin or its end. What is in force is written again with it: the compacted topic says who keeps it.
func (t *ModelTask) remark(v *version, k *keyState, d *record.Calibrator, now int64) error {
	f := v.Newest()
	if f == nil {
		return t.record(v, k, d, pipeline.StreamDecisions, now)
	}
	d.Published, d.Stage, d.Calibrator, d.Method = true, record.StageFull, json.RawMessage(f.Encoded), f.Cal.Method()
	d.EffectiveFrom = pipeline.Format(f.From)
	return t.record(v, k, d, pipeline.StreamCalibrators, now)
}
