package join

import (
	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// groupKey is what all rows of a joined batch have in common.
type groupKey struct {
	model int32
	k     int
	probs bool
	d     int
}

// labelled has the batches of the rows that have joined, one for each groupKey. Between messages they are empty.
type labelled struct {
	columns  []string // configured slices
	build    map[groupKey]*builder
	recent   *builder // the batch used last
	order    []*builder
	built    int // bytes that the batches have grown to
	features int // bytes of features in the batches
}

// maxBuilt is the total memory of the joined batches, in bytes, up to which it is reused.
const maxBuilt = 8 << 20

// groupOf returns the batch of a model version, to which the next rows are added.
func (l *labelled) groupOf(gk groupKey, models []arrowio.ModelKey) *builder {
	g := l.recent
	if g == nil || g.key != gk {
		if g = l.build[gk]; g == nil {
			g = newBuilder(models[gk.model], gk, l.columns)
			l.build[gk] = g
		}
		l.recent = g
	}
	if g.b.N == 0 {
		l.order = append(l.order, g)
	}
	return g
}

// emit hands the batches on and empties them.
func (l *labelled) emit(origin arrowio.Origin, emit pipeline.Emit) error {
	for _, g := range l.order {
		g.b.Origin = origin
		if _, err := emit(&g.b); err != nil {
			return err
		}
		g.reset()
		l.built += g.bytes() - g.counted
		g.counted = g.bytes()
	}
	if l.order, l.features = l.order[:0], 0; l.built > maxBuilt {
		l.dropBuilders()
	}
	return nil
}

// dropBuilders frees the batches.
func (l *labelled) dropBuilders() {
	clear(l.build)
	l.built, l.recent = 0, nil
}

// builder collects joined rows into one reused Labelled batch.
type builder struct {
	key     groupKey
	b       arrowio.Batch
	counted int // bytes of it in labelled.built
}

func newBuilder(key arrowio.ModelKey, gk groupKey, columns []string) *builder {
	g := &builder{key: gk, b: arrowio.Batch{
		Kind:   arrowio.Labelled,
		Models: []arrowio.ModelKey{key},
		K:      gk.k,
		Probs:  gk.probs,
		D:      gk.d,
	}}
	for _, c := range columns {
		g.b.Slices = append(g.b.Slices, arrowio.SliceColumn{Name: c})
	}
	return g
}

func (g *builder) add(w *buffer, e int32, labelTS pipeline.Time, label int32) {
	b, p, values := &g.b, &w.entries[e], w.slicesOf(e)
	b.N++
	b.IDs = append(b.IDs, p.id)
	b.TS = append(b.TS, p.ts)
	b.LabelTS = append(b.LabelTS, labelTS)
	b.Label = append(b.Label, label)
	b.Scores = append(b.Scores, w.row(p)...)
	b.Features = w.addFeatures(b.Features, p)
	b.Served = append(b.Served, p.served)
	b.Weight = append(b.Weight, p.weight)
	for c := range b.Slices {
		b.Slices[c].Values = w.values // interned: one table for all columns
		b.Slices[c].Index = append(b.Slices[c].Index, values[c])
	}
}

// bytes estimates the memory of the batch's columns.
func (g *builder) bytes() int {
	const row = 16 + 8 + 8 + 4 + 4 + 4 // id, times, label, served, weight
	return cap(g.b.IDs)*(row+4*len(g.b.Slices)) + 4*cap(g.b.Scores) + 4*cap(g.b.Features)
}

func (g *builder) reset() {
	b := &g.b
	b.N = 0
	b.IDs, b.TS, b.LabelTS, b.Label = b.IDs[:0], b.TS[:0], b.LabelTS[:0], b.Label[:0]
	b.Scores, b.Features, b.Served, b.Weight = b.Scores[:0], b.Features[:0], b.Served[:0], b.Weight[:0]
	for c := range b.Slices {
		b.Slices[c].Index = b.Slices[c].Index[:0]
	}
}
