package inputs

import (
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
)

func joined(paths []string) string { return strings.Join(paths, ", ") }

// build adds the rows of a group to those of the record.
func (c *collector) build(g *group, form arrowio.ScoreForm, scores []*column, cfg *Config) {
	at := g.rows
	if len(at) == c.n {
		at = nil // all, in order
	}
	n := len(c.out)
	c.out = slices.Grow(c.out, 1)[:n+1]
	r := &c.out[n]
	numbers := r.NumberIDs[:0]
	*r = arrowio.Rows{N: len(g.rows), Side: c.side, Form: form, K: g.k, Model: cfg.Model, Version: cfg.Version,
		Slices: r.Slices[:0], // of the record before
		Lists:  c.together && len(g.rows) < c.n}
	one := func(r role) *column {
		if !some(c.by[r]) {
			return nil
		}
		return c.by[r][0]
	}
	if col := one(roleModel); col != nil {
		r.Model, r.Models = col.named(at, cfg.Model, r.Lists)
	}
	if col := one(roleVersion); col != nil {
		r.Version, r.Versions = col.named(at, cfg.Version, r.Lists)
	}
	if col := one(roleID); col != nil {
		if col.numbers == 1 {
			for _, n := range pick(col.ints, at) {
				numbers = append(numbers, uint64(n))
			}
			r.NumberIDs = numbers
			r.NoID = pick(col.null, at)
		} else {
			r.IDs = col.picked(at)
		}
	}
	if col := one(roleTS); col != nil {
		r.TS, r.NoTS = pick(col.ints, at), pick(col.null, at)
	}
	if len(scores) > 0 {
		col := scores[0]
		r.NoScores = pick(col.null, at)
		r.Scores = pick(col.floats, at)
		if !form.Binary {
			r.Scores = col.slab(at, g.k)
		}
	}
	if col := one(roleLabel); col != nil {
		r.Label, r.NoLabel = pick(col.ints, at), pick(col.null, at)
	}
	if col := one(roleFeatures); col != nil && g.d > 0 {
		r.D, r.Features = g.d, col.slab(at, g.d)
	}
	if col := one(roleServed); col != nil {
		r.Served, r.NoServed = pick(col.floats, at), pick(col.null, at)
	}
	if col := one(roleWeight); col != nil {
		r.Weight, r.NoWeight = pick(col.floats, at), pick(col.null, at)
	}
	for _, col := range c.by[cohort] {
		if col.some {
			r.Slices = append(r.Slices, arrowio.NamedText{Name: col.name, Text: col.picked(at)})
		}
	}
}

// pick are the values of some rows; nil = all.
func pick[T any](values []T, at []int) []T {
	if at == nil {
		return values
	}
	out := make([]T, len(at))
	for j, i := range at {
		out[j] = values[i]
	}
	return out
}

func (c *column) picked(at []int) *arrowio.TextColumn {
	if at == nil {
		return &c.words
	}
	out := &arrowio.TextColumn{}
	for _, i := range at {
		out.Data = append(out.Data, c.words.At(i)...)
		out.Ends = append(out.Ends, int32(len(out.Data)))
	}
	return out
}

// named is the one name of all rows, or the column of them, or always this; rows that have none have another.
func (c *column) named(at []int, other string, always bool) (name string, col *arrowio.TextColumn) {
	t := c.picked(at)
	same := !always
	for i := range t.Ends {
		same = same && string(t.At(i)) == string(t.At(0))
	}
	if same {
		if b := t.At(0); string(b) != c.last {
			c.last = string(b)
		}
		if name = c.last; name == "" {
			name = other
		}
		if name != "" {
			return name, nil
		}
	}
	if other == "" {
		return "", t
	}
	out := &arrowio.TextColumn{}
	for i := range t.Ends {
		if s := t.At(i); len(s) > 0 {
			out.Data = append(out.Data, s...)
		} else {
			out.Data = append(out.Data, other...)
		}
		out.Ends = append(out.Ends, int32(len(out.Data)))
	}
	return "", out
}

// slab is the lists of some rows, each of k, row by row; NaN where a row has none.
func (c *column) slab(at []int, k int) []float32 {
	n := len(at)
	if at == nil {
		if n = c.n; len(c.floats) == n*k {
			return c.floats
		}
	}
	out := make([]float32, 0, n*k)
	for j := range n {
		i := j
		if at != nil {
			i = at[j]
		}
		row := c.row(i)
		if c.null[i] || len(row) != k {
			out = append(out, slices.Repeat([]float32{float32(math.NaN())}, k)...)
			continue
		}
		out = append(out, row...)
	}
	return out
}
