package window

import (
	"maps"
	"slices"
)

// absorb adds the content of another window of the same kind. Tumbling row windows have no common boundaries, so they
// stay as they are.
func (w *window) absorb(t *Stage, k int, o *window) error {
	if w.spec.Kind == "rows" {
		if w.tumbling() {
			return nil
		}
		return w.absorbRows(t, k, o)
	}
	if len(w.buckets) == 0 {
		w.started, w.final = w.started || o.started, max(w.final, o.final)
	}
	for _, i := range slices.Sorted(maps.Keys(o.buckets)) {
		if i+w.count()-1 < w.final {
			continue
		}
		if have := w.buckets[i]; have == nil {
			w.buckets[i] = o.buckets[i]
		} else if err := have.absorb(t, k, o.buckets[i]); err != nil {
			return err
		}
		for e := i; e < i+w.count(); e++ {
			if e >= w.final {
				w.dirty[e] = true
			}
		}
	}
	return nil
}

func (w *window) absorbRows(t *Stage, k int, o *window) error {
	delete(t.runs, w) // blocks change
	for _, b := range o.blocks {
		i, found := slices.BinarySearchFunc(w.blocks, b.end,
			func(x *bucket, end int64) int { return int(min(max(x.end-end, -1), 1)) })
		if found {
			if err := w.blocks[i].absorb(t, k, b); err != nil {
				return err
			}
		} else {
			w.blocks = slices.Insert(w.blocks, i, b)
		}
		w.total += b.labelled
	}
	w.trim()
	return nil
}

func (b *bucket) absorb(t *Stage, k int, o *bucket) error {
	b.late, b.labelled = b.late+o.late, b.labelled+o.labelled
	if err := t.env.Absorb(k, &b.raw, &o.raw, o.labelled); err != nil {
		return err
	}
	return t.env.Absorb(k, &b.cal, &o.cal, o.labelled)
}
