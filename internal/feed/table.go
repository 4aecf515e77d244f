package feed

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/arrowio/table"
)

// FromTable returns the rows of a file, sharing its memory where it can. Scores of type float64 are rounded to
// float32, which is what the messages carry. Slice columns come in order of their names.
func FromTable(t *table.Table) *Rows {
	r := &Rows{
		Model: t.Model, Version: t.Version, N: t.N, K: t.K, Scores: t.Scores32, Probs: t.Probs, Label: t.Label,
		IDs: t.IDs, TS: t.TS, D: t.D, Features: t.Features, Served: t.Served, Weight: t.Weight,
	}
	if r.Scores == nil {
		r.Scores = make([]float32, len(t.Scores64))
		for i, v := range t.Scores64 {
			r.Scores[i] = float32(v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Slices)) {
		r.Slices = append(r.Slices, Column{Name: name, Values: t.Slices[name]})
	}
	return r
}
