package window

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// spec is the definition of a window. A time window covers [end-size, end) of prediction time, one window for every
// slide. A row window covers the latest blocks of label panes with at least Rows labelled rows; it is published at
// every pane (sliding), or, if Every is set, one after the other (tumbling). A block is a pane, or neighbouring panes
// with at most Rows/64 rows together: a key with few rows a pane has no more memory and no more to add than others.
type spec struct {
	Config
	Size, Slide int64 // ns; Slide 0 = tumbling
}

// blocksOfRows is how many blocks of several panes a row window has, about.
const blocksOfRows = 64

// bucket is the smallest part of a window: a slide of prediction time, or a block of label panes.
type bucket struct {
	start, end int64 // span of event time
	raw, cal   acc.Packed
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
	blocks []*bucket
	total  int64
	owed   bool // rows came since it was last published
}

func newWindow(c Config) *window {
	s := spec{c, int64(c.Size), int64(cmp.Or(c.Slide, c.Size))}
	return &window{spec: s, buckets: map[int64]*bucket{}, dirty: map[int64]bool{}, final: math.MinInt64}
}

func (w *window) open() bool { return len(w.buckets) > 0 || w.owed }

func (w *window) count() int64 { return w.spec.Size / w.spec.Slide }

// add puts a label pane into the window. dropped counts labelled rows whose windows were final already.
func (w *window) add(s *State, in *stage.Pane) (dropped int64, err error) {
	t := s.stage
	if w.spec.Kind == "rows" {
		return 0, w.addRows(s, in)
	}
	if len(w.buckets) == 0 && len(in.Cells) > 0 {
		w.final, w.started = max(w.final, w.finalTo(t, in)), true
	}
	reached := map[*bucket]bool{}
	bucketOf := func(c stage.Cell) int64 { return pipeline.PaneIndex(c.PredictionPane*t.env.Pane, w.spec.Slide) }
	for cells := in.Cells; len(cells) > 0; {
		i, n := bucketOf(cells[0]), 1
		for n < len(cells) && bucketOf(cells[n]) == i {
			n++
		}
		if w.started && i+w.count()-1 < w.final {
			dropped += labelledRows(cells[:n])
		} else if err := w.put(s, i, cells[:n], in.Scored); err != nil {
			return dropped, err
		} else {
			reached[w.buckets[i]] = true
		}
		cells = cells[n:]
	}
	if err := w.join(s, reached); err != nil {
		return dropped, err
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

// put adds cells to bucket i.
func (w *window) put(s *State, i int64, cells []stage.Cell, sc stage.Scored) error {
	b := w.buckets[i]
	if b == nil {
		b = &bucket{start: i * w.spec.Slide, end: (i + 1) * w.spec.Slide}
		w.buckets[i] = b
	}
	for e := i; e < i+w.count(); e++ {
		w.dirty[e] = true
	}
	if s.ofRows {
		return b.addSeen(s, cells)
	}
	return b.add(s, cells, sc, (*acc.Summary).Add)
}

// join puts the late rows of a bucket to the rest: of the one with the most that the pane has not reached. So those
// that labels reach no longer take no more than they must. A pane without rows says nothing about that: with a row a
// minute, a bucket of a day would be put together at each.
func (w *window) join(s *State, reached map[*bucket]bool) error {
	if len(reached) == 0 {
		return nil
	}
	var most *bucket
	late := func(b *bucket) int { return b.raw.Late() + b.cal.Late() }
	for _, b := range w.buckets {
		switch n := late(b); {
		case n == 0 || reached[b]:
		case most == nil || n > late(most) || n == late(most) && b.start < most.start:
			most = b
		}
	}
	if most == nil {
		return nil
	}
	raw, cal, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
	return errors.Join(raw.Join(&most.raw), cal.Join(&most.cal))
}

func labelledRows(cells []stage.Cell) (n int64) {
	for _, c := range cells {
		n += c.Set.LabelledRows()
	}
	return n
}

func (w *window) addRows(s *State, in *stage.Pane) error {
	if in.Labelled == 0 {
		return nil
	}
	if w.tumbling() && w.total >= w.spec.Rows {
		w.blocks, w.total = nil, 0
	}
	if n := len(w.blocks); n == 0 || w.blocks[n-1].labelled+in.Labelled > w.spec.Rows/blocksOfRows {
		w.blocks = append(w.blocks, &bucket{start: in.End - s.stage.env.Pane})
	}
	b := w.blocks[len(w.blocks)-1]
	b.end, b.late = in.End, b.late+in.Late
	labelled := slices.DeleteFunc(slices.Clone(in.Cells), func(c stage.Cell) bool { return c.Set.LabelledRows() == 0 })
	if s.ofRows {
		b.labelled += in.Labelled
	} else if err := b.add(s, labelled, in.Scored, (*acc.Summary).AddLabelled); err != nil {
		return err
	}
	w.total += in.Labelled
	w.trim()
	return nil
}

// trim drops the blocks that a sliding row window needs no longer.
func (w *window) trim() {
	for !w.tumbling() && len(w.blocks) > 0 && w.total-w.blocks[0].labelled >= w.spec.Rows {
		w.total -= w.blocks[0].labelled
		w.blocks = slices.Delete(w.blocks, 0, 1)
	}
}

// BlockRows is the number of rows of a block of a row window where each label pane has so many.
func (c Config) BlockRows(pane float64) float64 {
	return pane * max(1, math.Floor(float64(c.Rows/blocksOfRows)/pane))
}

func (w *window) tumbling() bool { return w.spec.Every > 0 }

// add adds cells, and their sampled rows as the calibrators in force score them. A row window shows labelled rows only,
// so it ignores the rest of the cells.
func (b *bucket) add(s *State, cells []stage.Cell, sc stage.Scored, take func(*acc.Summary, *acc.Set) error) error {
	t := s.stage
	raw, cal, err := t.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
	err = raw.Pack(&b.raw, func(s *acc.Summary) error {
		for _, c := range cells {
			rows := c.Set.LabelledRows()
			b.labelled += rows
			if err := t.env.Fitted(take(s, c.Set), rows); err != nil {
				return err
			}
		}
		return nil
	})
	scored := slices.DeleteFunc(slices.Clone(cells), func(c stage.Cell) bool { return sc[c.PredictionPane] == nil })
	if err != nil || len(scored) == 0 {
		return err
	}
	return cal.Pack(&b.cal, func(s *acc.Summary) error {
		for _, c := range scored {
			set := sc[c.PredictionPane]
			if err := t.env.Fitted(take(s, set), set.LabelledRows()); err != nil {
				return err
			}
		}
		return nil
	})
}

// addSeen adds the predictions of cells whose labelled rows the key keeps.
func (b *bucket) addSeen(s *State, cells []stage.Cell) error {
	raw, _, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
	b.labelled += labelledRows(cells)
	return raw.Pack(&b.raw, func(to *acc.Summary) error {
		for _, c := range cells {
			if err := s.stage.env.Fitted(to.AddSeen(c.Set), 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// due returns the windows to publish at the end of a pane, and drops buckets that no window needs any more. The latest
// window is published at each turn of its key if it changed. One that has ended is published again 1, 2, 4, 8 … slides
// later if labels came, and once more, as final, when the label panes are FinalAfter past its end: labels that take an
// hour reach sixty windows that slide by a minute.
func (w *window) due(t *Stage, in *stage.Pane, turn turn) []view {
	if w.spec.Kind == KindRows {
		return w.dueRows(in, turn.now)
	}
	if len(w.buckets) == 0 {
		// There is nothing to publish or drop. This shortcut avoids walking a gap of years window by window.
		if w.started {
			w.final = max(w.final, w.finalTo(t, in))
		}
		return nil
	}
	finalTo := w.finalTo(t, in)
	latest := pipeline.PaneIndex(in.End-1, w.spec.Slide)
	ended, before := pipeline.PaneIndex(in.End, w.spec.Slide), pipeline.PaneIndex(in.End-turn.every, w.spec.Slide)
	if finalTo <= w.final && len(in.Cells) == 0 && (!turn.now || ended == before && !w.dirty[latest]) {
		return nil // where labels take weeks, most panes are such, and thousands of windows wait for them
	}
	if w.started {
		for e := w.final; e < finalTo; e++ {
			w.dirty[e] = true
		}
	}
	var now []int64
	for e := range w.dirty {
		// Whether its age, in slides, has come to a power of 2 since the turn before.
		doubled := bits.Len64(uint64(ended-e-1)) != bits.Len64(uint64(before-e-1))
		if e <= latest && (e < finalTo || turn.now && (doubled || e == latest)) {
			now = append(now, e)
		}
	}
	slices.Sort(now)
	var out []view
	for _, e := range now {
		delete(w.dirty, e)
		if v := w.viewAt(e, e < finalTo); len(v.parts) > 0 {
			out = append(out, v)
		}
	}
	if w.started && finalTo > w.final {
		w.forget(finalTo)
	}
	return out
}

// forget makes windows that end before a bucket final, and drops the buckets that only they had.
func (w *window) forget(to int64) {
	first, last := w.final+1-w.count(), to-w.count() // of those that only they have
	w.final = to
	if last-first >= int64(len(w.buckets)) {
		maps.DeleteFunc(w.buckets, func(i int64, _ *bucket) bool { return i <= last })
		return
	}
	for i := first; i <= last; i++ {
		delete(w.buckets, i)
	}
}

// dueRows is due of a row window. The last of tumbling ones is published when it is complete.
func (w *window) dueRows(in *stage.Pane, now bool) []view {
	w.owed = w.owed || in.Labelled > 0
	final := w.tumbling() && w.total >= w.spec.Rows
	if !w.owed || len(w.blocks) == 0 || !now && !final {
		return nil
	}
	w.owed = false
	return []view{{w.blocks, w.blocks[0].start, in.End, final}}
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
