package tracing

import (
	"time"
)

// Cut is what a checkpoint takes over of a lane: it is finished beside the task.
type Cut struct {
	lane   *Lane
	at     time.Time
	oldest int64
	ended  []ending
	sends  []*send
	trace  string
}

// Checkpoint begins one. nil where the lane is nil.
func (l *Lane) Checkpoint() *Cut {
	if l == nil {
		return nil
	}
	c := &Cut{lane: l, at: time.Now(), oldest: l.oldest, ended: l.ended, sends: l.sends}
	l.oldest, l.ended, l.sends = 0, nil, nil
	if len(c.ended) > 0 {
		c.trace = c.ended[0].trace.String()
	}
	return c
}

// Wrote says that the outputs of the streams that are meant were written from start until now.
func (c *Cut) Wrote(start time.Time, err error, meant func(stream string) bool) {
	if c == nil {
		return
	}
	now := time.Now()
	for _, s := range c.sends {
		topic := c.lane.Topic(s.stream)
		if topic == "" || !meant(s.stream) {
			continue
		}
		span := Span{
			Context: s.Context,
			Parent:  s.parent,
			Name:    "send " + topic,
			Kind:    Producer,
			Start:   start,
			End:     now,
			Attrs: []Attr{
				{"messaging.system", "kafka"},
				{"messaging.destination.name", topic},
				{"messaging.operation.type", "send"},
				{"messaging.operation.name", "send"},
				{"plumbline.task", c.lane.Task},
			},
		}
		if err != nil {
			span.Err = err.Error()
		}
		c.lane.Tracer.Export(span)
	}
}

// Saved says that everything of the checkpoint is durable, or that it failed.
func (c *Cut) Saved(number uint64, err error) {
	if c == nil {
		return
	}
	now := time.Now()
	if err == nil {
		c.lane.save(max(0, now.Sub(c.at)), c.trace)
		if c.oldest > 0 {
			c.lane.total(max(0, time.Duration(now.UnixNano()-c.oldest)), c.trace)
		}
	}
	for _, e := range c.ended {
		step := func(name string, start, end time.Time) Span {
			at := e.branch.at(newSpan())
			return Span{Context: at, Parent: e.process, Name: name, Kind: Internal, Start: start, End: end}
		}
		wait := step("wait for checkpoint", e.at, c.at)
		save := step("save checkpoint", c.at, now)
		save.Attrs = []Attr{{"plumbline.checkpoint", int64(number)}}
		if err != nil {
			save.Err = err.Error()
		}
		c.lane.Tracer.Export(wait)
		c.lane.Tracer.Export(save)
	}
}
