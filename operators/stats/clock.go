package stats

import "github.com/plumbline/plumbline/pipeline"

// paneClock says which label panes have been emitted: by the clock of each model, or by one for all models.
type paneClock struct {
	clocks *pipeline.Clocks // nil: closed holds for every model
	newest newest
	closed int64 // label panes before this one have been emitted
}

// newest is the newest event time in a run of rows of one model and input.
type newest struct {
	model string
	input pipeline.Input
	ts    int64
	some  bool
}

// seen notes the event time of a row for its model's clock: a prediction, or a label that has joined.
func (c *paneClock) seen(model string, x *countedRow) {
	if c.clocks == nil || x.shadow {
		return
	}
	n := newest{model: model, input: pipeline.Logits, ts: x.ts, some: true}
	if !x.prediction {
		n.input, n.ts = pipeline.Labels, x.labelTS
	}
	if o := &c.newest; o.some && o.model == n.model && o.input == n.input {
		o.ts = max(o.ts, n.ts)
		return
	}
	c.observe(n)
}

// observe passes the run's newest time to the clock and starts the next run.
func (c *paneClock) observe(next newest) {
	if n := c.newest; n.some {
		c.clocks.Observe(n.input, n.model, n.ts)
	}
	c.newest = next
}

// closedOf returns a model's first label pane that has not been emitted.
func (c *paneClock) closedOf(model string) int64 {
	if c.clocks == nil {
		return c.closed
	}
	return c.clocks.ClosedOf(model)
}
