package inputs

import (
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
