package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// call is what one call was given, copied.
type call struct {
	Rows
	labels bool
	n, d   int
	bytes  int
	shape  string // calls of one shape may be one message
}

// newCall copies what the caller may change.
func newCall(r *Rows) *call {
	c := &call{n: len(r.IDs), Rows: Rows{IDs: slices.Clone(r.IDs), Logits: slices.Clone(r.Logits),
		Probs: slices.Clone(r.Probs), Classes: r.Classes, Labels: slices.Clone(r.Labels),
		Features: slices.Clone(r.Features), Served: slices.Clone(r.Served), Weight: slices.Clone(r.Weight),
		Times: slices.Clone(r.Times)}}
	if len(r.Slices) > 0 {
		c.Slices = make(map[string][]string, len(r.Slices))
		for name, values := range r.Slices {
			c.Slices[name] = slices.Clone(values)
		}
	}
	now := time.Now()
	if len(c.Times) == 0 {
		c.Times = []time.Time{now}
	}
	for i, t := range c.Times {
		if t.IsZero() {
			c.Times[i] = now
		}
	}
	return c
}

// rows is how many rows the caller meant, where there may be no ids.
func (c *call) rows() int {
	switch scores := len(c.Logits) + len(c.Probs); {
	case c.n > 0:
		return c.n
	case c.Classes > 0 && scores > 0:
		return scores / c.Classes
	}
	return len(c.Labels)
}

// check returns an error where columns do not fit each other, or none of the rows would be taken.
func (c *call) check() error {
	switch {
	case c.n == 0:
		return errors.New("rows without ids")
	case c.labels && len(c.Labels) != c.n:
		return fmt.Errorf("%d labels for %d ids", len(c.Labels), c.n)
	case c.labels:
		c.shape = "labels"
		return nil
	case (len(c.Logits) > 0) == (len(c.Probs) > 0):
		return errors.New("either logits or probs must be set")
	case c.Classes < 2 || len(c.Logits)+len(c.Probs) != c.n*c.Classes:
		return fmt.Errorf("%d scores for %d ids of %d classes", len(c.Logits)+len(c.Probs), c.n, c.Classes)
	case len(c.Features)%c.n != 0:
		return fmt.Errorf("%d features for %d ids", len(c.Features), c.n)
	}
	c.d = len(c.Features) / c.n
	for name, have := range map[string]int{"labels": len(c.Labels), "served": len(c.Served), "weight": len(c.Weight)} {
		if have != 0 && have != c.n {
			return fmt.Errorf("%s: %d values for %d ids", name, have, c.n)
		}
	}
	if n := len(c.Times); n != 1 && n != c.n {
		return fmt.Errorf("times: %d values for %d ids", n, c.n)
	}
	for name, values := range c.Slices {
		if len(values) != 1 && len(values) != c.n {
			return fmt.Errorf("slice %s: %d values for %d ids", name, len(values), c.n)
		}
	}
	if err := c.checkShape(); err != nil {
		return err
	}
	c.shape = fmt.Sprintf("%v %d %d %v %v %v %q", len(c.Logits) > 0, c.Classes, c.d, len(c.Labels) > 0,
		len(c.Served) > 0, len(c.Weight) > 0, slices.Sorted(maps.Keys(c.Slices))) // quoted: a name may be "a,b"
	return nil
}

// size is about how much memory the call takes.
func (c *call) size() int {
	c.bytes = 250 + 4*(len(c.Logits)+len(c.Probs)+len(c.Labels)+len(c.Features)+len(c.Served)+len(c.Weight)) +
		24*len(c.Times)
	for _, id := range c.IDs {
		c.bytes += 16 + len(id)
	}
	for _, values := range c.Slices {
		for _, v := range values {
			c.bytes += 16 + len(v)
		}
	}
	return c.bytes
}

// choose keeps some rows.
func (c *call) choose(keep []int) {
	c.IDs, c.Labels = chosen(c.IDs, keep, 1), chosen(c.Labels, keep, 1)
	c.Logits, c.Probs = chosen(c.Logits, keep, c.Classes), chosen(c.Probs, keep, c.Classes)
	c.Features = chosen(c.Features, keep, c.d)
	c.Served, c.Weight = chosen(c.Served, keep, 1), chosen(c.Weight, keep, 1)
	if len(c.Times) == c.n && c.n > 1 {
		c.Times = chosen(c.Times, keep, 1)
	}
	for name, values := range c.Slices {
		if len(values) == c.n && c.n > 1 {
			c.Slices[name] = chosen(values, keep, 1)
		}
	}
	c.n = len(keep)
}

func chosen[T any](values []T, keep []int, per int) []T {
	if len(values) == 0 {
		return values
	}
	out := make([]T, 0, len(keep)*per)
	for _, i := range keep {
		out = append(out, values[i*per:(i+1)*per]...)
	}
	return out
}

// join is the rows of calls of one shape, with every value written out.
func join(calls []*call) *call {
	out := &call{labels: calls[0].labels, d: calls[0].d, shape: calls[0].shape}
	out.Classes = calls[0].Classes
	for name := range calls[0].Slices {
		if out.Slices == nil {
			out.Slices = map[string][]string{}
		}
		out.Slices[name] = nil
	}
	for _, c := range calls {
		out.n += c.n
		out.IDs, out.Labels = append(out.IDs, c.IDs...), append(out.Labels, c.Labels...)
		out.Logits, out.Probs = append(out.Logits, c.Logits...), append(out.Probs, c.Probs...)
		out.Features = append(out.Features, c.Features...)
		out.Served, out.Weight = append(out.Served, c.Served...), append(out.Weight, c.Weight...)
		out.Times = append(out.Times, spread(c.Times, c.n)...)
		for name, values := range c.Slices {
			out.Slices[name] = append(out.Slices[name], spread(values, c.n)...)
		}
	}
	return out
}

// spread is one value for each of n rows.
func spread[T any](values []T, n int) []T {
	if len(values) == 1 && n > 1 {
		return slices.Repeat(values, n)
	}
	return values
}

// part is some of the rows of a call that join has made.
func (c *call) part(rows []int) *call {
	p := *c
	p.Slices = maps.Clone(c.Slices)
	p.choose(rows)
	return &p
}

// encode is the call as a message.
func (c *call) encode(model, version string) ([]byte, error) {
	ts := make([]arrowio.Time, len(c.Times))
	for i, t := range c.Times {
		ts[i] = t.UnixNano()
	}
	if c.labels {
		return arrowio.EncodeLabels(model, version, c.IDs, ts, c.Labels)
	}
	out := arrowio.Columns{Model: model, Version: version, IDs: c.IDs, TS: ts, K: c.Classes, Logits: c.Logits,
		Probs: c.Probs, Label: c.Labels, D: c.d, Features: c.Features, Served: c.Served, Weight: c.Weight}
	for _, name := range slices.Sorted(maps.Keys(c.Slices)) {
		out.Slices = append(out.Slices, arrowio.StringColumn{Name: name, Values: c.Slices[name]})
	}
	return arrowio.EncodePredictions(out)
}
