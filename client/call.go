package client

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/plumbline/plumbline/arrowio"
)

// call is what one call was given, copied.
type call struct {
	Rows    // without Slices: a map of a few is larger than a row
	columns []arrowio.StringColumn
	labels  bool
	n, d    int
	bytes   int
	shape   unique.Handle[string] // calls of one shape may be one message
}

// newCall copies what the caller may change.
func newCall(r *Rows) *call {
	c := &call{n: len(r.IDs), Rows: Rows{IDs: slices.Clone(r.IDs), Logits: slices.Clone(r.Logits),
		Probs: slices.Clone(r.Probs), Classes: r.Classes, Labels: slices.Clone(r.Labels),
		Features: slices.Clone(r.Features), Served: slices.Clone(r.Served), Weight: slices.Clone(r.Weight),
		Times: slices.Clone(r.Times)}}
	for _, name := range slices.Sorted(maps.Keys(r.Slices)) {
		c.columns = append(c.columns, arrowio.StringColumn{Name: name, Values: slices.Clone(r.Slices[name])})
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
		c.shape = unique.Make("labels")
		return nil
	case (len(c.Logits) > 0) == (len(c.Probs) > 0):
		return errors.New("either logits or probs must be set")
	case c.Classes < 2:
		return fmt.Errorf("%d classes: at least 2; send the scores of both for a binary classifier", c.Classes)
	case len(c.Logits)+len(c.Probs) != c.n*c.Classes:
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
	names := make([]string, len(c.columns))
	for i, s := range c.columns {
		if names[i] = s.Name; len(s.Values) != 1 && len(s.Values) != c.n {
			return fmt.Errorf("slice %s: %d values for %d ids", s.Name, len(s.Values), c.n)
		}
	}
	if err := c.checkShape(); err != nil {
		return err
	}
	c.shape = unique.Make(fmt.Sprintf("%v %d %d %v %v %v %q", len(c.Logits) > 0, c.Classes, c.d, len(c.Labels) > 0,
		len(c.Served) > 0, len(c.Weight) > 0, names)) // quoted: a name may be "a,b"
	return nil
}

// own makes the call independent of what the caller may keep or drop, and returns about how much memory it takes. Its
// texts become one: an id is often cut from a request, all of which it would keep in memory.
func (c *call) own() int {
	all := make([][]string, 0, 1+len(c.columns))
	all = append(all, c.IDs)
	for i := range c.columns {
		s := &c.columns[i]
		s.Name = unique.Make(s.Name).Value()
		all = append(all, s.Values)
	}
	var text strings.Builder
	n := 0
	for _, values := range all {
		for _, v := range values {
			n += len(v)
		}
	}
	text.Grow(n)
	for _, values := range all {
		for _, v := range values {
			text.WriteString(v)
		}
	}
	c.bytes = callBytes + allocated(n) + allocated(int(columnBytes)*len(c.columns)) + allocated(24*len(c.Times))
	rest := text.String()
	for _, values := range all {
		c.bytes += allocated(16 * len(values))
		for i, v := range values {
			values[i], rest = rest[:len(v)], rest[len(v):]
		}
	}
	for _, values := range [][]float32{c.Logits, c.Probs, c.Features, c.Served, c.Weight} {
		c.bytes += allocated(4 * len(values))
	}
	c.bytes += allocated(4 * len(c.Labels))
	return c.bytes
}

// callBytes is a call without rows, with its place in the queue.
var (
	callBytes   = allocated(int(reflect.TypeFor[call]().Size())) + 12
	columnBytes = reflect.TypeFor[arrowio.StringColumn]().Size()
)

// allocated is about what n bytes take in memory, which is given out in steps.
func allocated(n int) int {
	if n >= 256 {
		return n + n/16
	}
	return (n + 15) &^ 15
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
	for i := range c.columns {
		if s := &c.columns[i]; len(s.Values) == c.n && c.n > 1 {
			s.Values = chosen(s.Values, keep, 1)
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
	for _, s := range calls[0].columns {
		out.columns = append(out.columns, arrowio.StringColumn{Name: s.Name})
	}
	for _, c := range calls {
		out.n += c.n
		out.IDs, out.Labels = append(out.IDs, c.IDs...), append(out.Labels, c.Labels...)
		out.Logits, out.Probs = append(out.Logits, c.Logits...), append(out.Probs, c.Probs...)
		out.Features = append(out.Features, c.Features...)
		out.Served, out.Weight = append(out.Served, c.Served...), append(out.Weight, c.Weight...)
		out.Times = append(out.Times, spread(c.Times, c.n)...)
		for i, s := range c.columns {
			to := &out.columns[i]
			to.Values = append(to.Values, spread(s.Values, c.n)...)
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
	p.columns = slices.Clone(c.columns)
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
	return arrowio.EncodePredictions(arrowio.Columns{Model: model, Version: version, IDs: c.IDs, TS: ts, K: c.Classes,
		Logits: c.Logits, Probs: c.Probs, Label: c.Labels, D: c.d, Features: c.Features, Served: c.Served,
		Weight: c.Weight, Slices: c.columns})
}
