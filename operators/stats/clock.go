package stats

import "github.com/plumbline/plumbline/pipeline"

// newest is the newest event time in a run of rows of one model and input.
type newest struct {
	model string
	input pipeline.Input
	ts    int64
	some  bool
}

// seen notes the event time of a row for its model's clock: a prediction, or a label that has joined.
func seen(s *Operator, model string, x *countedRow) {
	if s.clocks == nil || x.shadow {
		return
	}
	n := newest{model: model, input: pipeline.Logits, ts: x.ts, some: true}
	if !x.prediction {
		n.input, n.ts = pipeline.Labels, x.labelTS
	}
	if o := &s.newest; o.some && o.model == n.model && o.input == n.input {
		o.ts = max(o.ts, n.ts)
		return
	}
	observe(s, n)
}

// observe passes the run's newest time to the clock and starts the next run.
func observe(s *Operator, next newest) {
	if n := s.newest; n.some {
		s.clocks.Observe(n.input, n.model, n.ts)
	}
	s.newest = next
}

// closedOf returns a model's first label pane that has not been emitted.
func closedOf(s *Operator, model string) int64 {
	if s.clocks == nil {
		return s.closed
	}
	return s.clocks.ClosedOf(model)
}
