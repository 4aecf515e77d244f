package stats

import "github.com/plumbline/plumbline/pipeline"

// newest is the newest event time of successive rows of one model and input.
type newest struct {
	model string
	input pipeline.Input
	ts    int64
	some  bool
}

// seen takes note of a row for its model's clock: of a prediction, or of a label that has met its prediction.
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

// observe passes the newest row so far to the clock, and remembers the next one.
func observe(s *Operator, next newest) {
	if n := s.newest; n.some {
		s.clocks.Observe(n.input, n.model, n.ts)
	}
	s.newest = next
}

// closedOf is a model's first label pane that has not been emitted.
func closedOf(s *Operator, model string) int64 {
	if s.clocks == nil {
		return s.closed
	}
	return s.clocks.ClosedOf(model)
}
