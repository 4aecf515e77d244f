package pair

import (
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// groupKey is what the rows of one batch have in common.
type groupKey struct {
	model   arrowio.ModelKey
	k, d    int
	probs   bool
	keyType arrowio.KeyType
}

// group is a batch that is made.
type group struct {
	key  groupKey
	b    arrowio.Batch
	ids  []byte // as they came
	ends []int32
}

// batches collects responses that go on.
type batches struct {
	columns []string
	groups  []*group
	values  []string // of slices, one table for all columns
	index   map[string]int32
}

func (o *batches) add(e *entry, w *row) {
	key := groupKey{model: arrowio.ModelKey{Model: e.key.model, Version: w.version}, k: w.k, d: len(w.features),
		probs: w.probs, keyType: w.keyType}
	at := slices.IndexFunc(o.groups, func(g *group) bool { return g.key == key })
	if at < 0 {
		at = len(o.groups)
		o.groups = append(o.groups, newGroup(key, o.columns))
	}
	g := o.groups[at]
	b := &g.b
	b.N++
	b.IDs, b.TS = append(b.IDs, e.key.id), append(b.TS, e.ts)
	b.Scores, b.Features = append(b.Scores, w.scores...), append(b.Features, w.features...)
	b.Label, b.Served = append(b.Label, w.label), append(b.Served, w.served)
	if w.weight != w.weight {
		w.weight = 1
	}
	b.Weight = append(b.Weight, w.weight)
	for c := range b.Slices {
		b.Slices[c].Index = append(b.Slices[c].Index, o.value(w, b.Slices[c].Name))
	}
	g.ids = append(g.ids, w.key...)
	g.ends = append(g.ends, int32(len(g.ids)))
}

func newGroup(key groupKey, columns []string) *group {
	g := &group{key: key, b: arrowio.Batch{Kind: arrowio.Predictions, Models: []arrowio.ModelKey{key.model}, K: key.k,
		D: key.d, Probs: key.probs}}
	for _, c := range columns {
		g.b.Slices = append(g.b.Slices, arrowio.SliceColumn{Name: c})
	}
	return g
}

// value is the index of a row's value in a column; -1 = it has none.
func (o *batches) value(w *row, column string) int32 {
	for _, s := range w.slices {
		if s.column != column {
			continue
		}
		i, ok := o.index[s.value]
		if !ok {
			if o.index == nil {
				o.index = map[string]int32{}
			}
			i = int32(len(o.values))
			o.index[s.value], o.values = i, append(o.values, s.value)
		}
		return i
	}
	return -1
}

// emit hands on what was collected.
func (o *batches) emit(origin arrowio.Origin, emit pipeline.Emit) error {
	groups := o.groups
	o.groups = nil
	for _, g := range groups {
		b := &g.b
		b.Origin = origin
		for c := range b.Slices {
			b.Slices[c].Values = o.values
		}
		if !slices.ContainsFunc(b.Label, func(y int32) bool { return y >= 0 }) {
			b.Label = nil
		}
		b.SetKeys(g.key.keyType, g.ids, g.ends)
		if _, err := emit(b); err != nil {
			return err
		}
	}
	o.values, o.index = nil, nil
	return nil
}
