package window

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// spec is the definition of a window. A time window covers [end-size, end) of prediction time, one window for every
// slide. A row window covers the latest whole label panes with at least Rows labelled rows; it is published at every
// pane (sliding), or, if Every is set, one after the other (tumbling).
type spec struct {
	Config
	Size, Slide int64 // ns; Slide 0 = tumbling
}

// bucket is the smallest part of a window: a slide of prediction time, or a label pane.
type bucket struct {
	start, end int64 // span of event time
	raw, cal   *acc.Set
	late       int64
	labelled   int64
}

// window is the state of one window definition of one key.
type window struct {
	spec spec
	// Fields of time windows.
	buckets map[int64]*bucket // by floor(prediction time / Slide)
	dirty   map[int64]bool    // end buckets of windows that changed since they were last published
	final   int64             // windows that end before this bucket are final
	started bool
	// Fields of row windows.
	panes []*bucket
	total int64
}

func newWindow(c Config) *window {
	s := spec{c, int64(c.Size), int64(cmp.Or(c.Slide, c.Size))}
	return &window{spec: s, buckets: map[int64]*bucket{}, dirty: map[int64]bool{}, final: math.MinInt64}
}

func (w *window) open() bool { return len(w.buckets) > 0 }

func (w *window) count() int64 { return w.spec.Size / w.spec.Slide }

// add puts a label pane into the window. dropped counts labelled rows whose windows were final already.
func (w *window) add(t *Stage, k int, in *stage.Pane) (dropped int64, err error) {
	sc := in.Scored
	if w.spec.Kind == "rows" {
		return 0, w.addRows(t, k, in)
	}
	if len(w.buckets) == 0 && len(in.Cells) > 0 {
		w.final, w.started = max(w.final, w.finalTo(t, in)), true
	}
	for _, c := range in.Cells {
		i := pipeline.PaneIndex(c.PredictionPane*t.env.Pane, w.spec.Slide)
		if w.started && i+w.count()-1 < w.final {
			dropped += c.Set.LabelledRows()
			continue
		}
		b := w.buckets[i]
		if b == nil {
			b = &bucket{start: i * w.spec.Slide, end: (i + 1) * w.spec.Slide}
			w.buckets[i] = b
		}
		if err := b.merge(t, k, c.Set, sc[c.PredictionPane]); err != nil {
			return dropped, err
		}
		for e := i; e < i+w.count(); e++ {
			w.dirty[e] = true
		}
	}
	if in.Late > 0 && len(in.Cells) > 0 {
		// Late rows count in the window that is current when they come.
		if b := w.buckets[pipeline.PaneIndex(in.Cells[len(in.Cells)-1].PredictionPane*t.env.Pane,
			w.spec.Slide)]; b != nil {
			b.late += in.Late
		}
	}
	return dropped, nil
}

func (w *window) addRows(t *Stage, k int, in *stage.Pane) error {
	sc := in.Scored
	if in.Labelled == 0 {
		return nil
	}
	b := &bucket{start: in.End - t.env.Pane, end: in.End, late: in.Late}
	for _, c := range in.Cells {
		if c.Set.LabelledRows() == 0 {
			continue
		}
		if err := b.merge(t, k, c.Set, sc[c.PredictionPane]); err != nil {
			return err
		}
	}
	if w.tumbling() && w.total >= w.spec.Rows {
		w.panes, w.total = nil, 0
	}
	w.panes = append(w.panes, b)
	w.total += b.labelled
	for !w.tumbling() && w.total-w.panes[0].labelled >= w.spec.Rows {
		w.total -= w.panes[0].labelled
		w.panes = slices.Delete(w.panes, 0, 1)
	}
	return nil
}

func (w *window) tumbling() bool { return w.spec.Every > 0 }

func (b *bucket) merge(t *Stage, k int, raw, cal *acc.Set) error {
	var err error
	if b.raw == nil {
		if b.raw, err = t.env.NewSums(k); err != nil {
			return err
		}
	}
	if err = t.env.MergeInto(b.raw, raw); err != nil {
		return err
	}
	b.labelled += raw.LabelledRows()
	if cal == nil {
		return nil
	}
	if b.cal == nil {
		if b.cal, err = t.env.NewSums(k); err != nil {
			return err
		}
	}
	return t.env.MergeInto(b.cal, cal)
}

// due returns the windows to publish at the end of a pane, and drops buckets that no window needs any more. The latest
// window is published whenever it changed. An older window is published when a slide boundary is passed, and once more,
// as final, when the label panes are FinalAfter past its end.
func (w *window) due(t *Stage, in *stage.Pane) []view {
	if w.spec.Kind == "rows" {
		if in.Labelled == 0 {
			return nil
		}
		return []view{{w.panes, w.panes[0].start, in.End, w.tumbling() && w.total >= w.spec.Rows}}
	}
	if len(w.buckets) == 0 {
		// There is nothing to publish or drop. This shortcut avoids walking a gap of years window by window.
		if w.started {
			w.final = max(w.final, w.finalTo(t, in))
		}
		return nil
	}
	latest := pipeline.PaneIndex(in.End-1, w.spec.Slide)
	boundary := in.End%w.spec.Slide == 0
	finalTo := w.finalTo(t, in)
	var out []view
	if w.started && finalTo > w.final {
		for e := w.final; e < finalTo; e++ {
			w.dirty[e] = true
		}
	}
	for _, e := range slices.Sorted(maps.Keys(w.dirty)) {
		final := e < finalTo
		if !final && !boundary && e != latest {
			continue
		}
		if e > latest {
			continue
		}
		delete(w.dirty, e)
		if v := w.viewAt(e, final); len(v.parts) > 0 {
			out = append(out, v)
		}
	}
	if w.started && finalTo > w.final {
		w.final = finalTo
		for i := range w.buckets {
			if i+w.count()-1 < w.final {
				delete(w.buckets, i)
			}
		}
	}
	return out
}

// finalTo returns the end bucket of the first window that can still change.
func (w *window) finalTo(t *Stage, in *stage.Pane) int64 {
	return pipeline.PaneIndex(in.End-t.env.FinalAfter, w.spec.Slide)
}

// view is the content of a window.
type view struct {
	parts      []*bucket
	start, end int64
	final      bool
}

func (w *window) viewAt(e int64, final bool) view {
	v := view{start: (e + 1 - w.count()) * w.spec.Slide, end: (e + 1) * w.spec.Slide, final: final}
	for i := e - w.count() + 1; i <= e; i++ {
		if b := w.buckets[i]; b != nil {
			v.parts = append(v.parts, b)
		}
	}
	return v
}
