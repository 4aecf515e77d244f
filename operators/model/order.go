package model

import (
	"fmt"

	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
)

// command accepts an order. Its place is after all label panes that are closed. If the model waits for a fit, those
// panes are processed first.
func (t *Task) command(c *pipeline.Order) error {
	m := t.models[c.Model]
	if t.shards.reached == minPane {
		return t.refits.Refuse(c, refit.NoTime, noPane)
	}
	if m == nil {
		return t.refits.Refuse(c, t.shards.reached*t.cfg.Pane, noPane)
	}
	m.reached = t.shards.barrierOf(m)
	m.orders.Add(m.reached, c)
	return t.advance(m, m.reached)
}

const noPane = "the model has no label pane yet"

// obey carries out the orders whose place is at or before a label pane.
func (t *Task) obey(m *model, pane int64) error {
	for {
		c, place := m.orders.Next(pane)
		if c == nil {
			return nil
		}
		v, why := m.addressed(c.Version)
		var err error
		switch {
		case v == nil:
			err = t.refits.Refuse(c, place*t.cfg.Pane, why)
		case c.Action == pipeline.ActionClasses:
			err = (&stepper{&t.fleet, v}).orderClasses(c, place)
		default:
			err = v.refit.Obey(c, place*t.cfg.Pane)
		}
		if err != nil {
			return err
		}
	}
}

// addressed returns the version that an order means, or nil and the reason.
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
