package window

import (
	"errors"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// The windows of a version that is new have no sums of labelled rows. The key still keeps every labelled row, so the
// sums are made of the rows when a window is read. That is a fifth of the memory: each window has the same rows, and
// sums of a few rows take more than the rows. Predictions are summed always.

// begins reports whether the windows of a key begin with rows.
func (t *Stage) begins(k *stage.Key) bool {
	return k.IsNew() && t.env.SampleRows >= stage.NewRows && len(k.Version.Calibrators) == 0
}

// keeps reports whether the rows that the key keeps of a pane say all that its cells say of labelled rows.
func (s *State) keeps(in *stage.Pane) (bool, error) {
	t := s.stage
	if !t.begins(s.key) || int64(len(in.Rows)) != in.Labelled {
		return false, nil
	}
	for i := range in.Rows {
		if pipeline.PaneIndex(in.Rows[i].LabelTS, t.env.Pane) != in.Index {
			return false, nil
		}
	}
	for _, c := range in.Cells {
		if c.Set.LabelledRows() == 0 {
			continue
		}
		scored := in.Scored[c.PredictionPane]
		if scored == nil {
			return false, nil
		}
		var sums [2]acc.Packed
		if err := s.addTo(&sums[0], &sums[1], c.Set, scored); err != nil {
			return false, err
		}
		if !sums[0].Equal(&sums[1]) {
			return false, nil
		}
	}
	return true, nil
}

// addTo adds labelled rows to packed sums of each signal.
func (s *State) addTo(raw, cal *acc.Packed, rows, calibrated *acc.Set) error {
	r, c, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
	return errors.Join(
		r.Pack(raw, func(to *acc.Summary) error { return to.AddLabelled(rows) }),
		c.Pack(cal, func(to *acc.Summary) error { return to.AddLabelled(calibrated) }))
}

// addRowsOf adds those of the rows that are in parts of a window, in the sets in which they came: of a label pane those
// of a prediction pane. Sums of a set are rounded.
func (s *State) addRowsOf(w *window, parts []*bucket, rows []acc.SampleRow, add func(*acc.Set) error) error {
	env, sets := s.stage.env, map[[2]int64][]*acc.SampleRow{}
	for i := range rows {
		cell := [2]int64{pipeline.PaneIndex(rows[i].LabelTS, env.Pane), pipeline.PaneIndex(rows[i].TS, env.Pane)}
		at := rows[i].LabelTS
		if w.spec.Kind != "rows" {
			at = cell[1] * env.Pane // a bucket has whole panes
		}
		if slices.ContainsFunc(parts, func(b *bucket) bool { return b.start <= at && at < b.end }) {
			sets[cell] = append(sets[cell], &rows[i])
		}
	}
	set, err := env.NewSums(s.key.K)
	if err != nil {
		return err
	}
	sc := stage.NewScorer(s.key.K)
	inOrder := slices.SortedFunc(maps.Keys(sets), func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	for _, cell := range inOrder {
		set.Reset()
		for _, row := range sets[cell] {
			if err := sc.Add(set, nil, row); err != nil {
				return err
			}
		}
		if err := add(set); err != nil {
			return err
		}
	}
	return nil
}

// sumRows gives the windows sums of the labelled rows that they have.
func (s *State) sumRows(rows []acc.SampleRow) error {
	if !s.ofRows {
		return nil
	}
	s.ofRows = false
	for _, w := range s.windows {
		for _, b := range w.parts() {
			add := func(set *acc.Set) error { return s.addTo(&b.raw, &b.cal, set, set) }
			if err := s.addRowsOf(w, []*bucket{b}, rows, add); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns all buckets in ascending order.
func (w *window) parts() []*bucket {
	parts := slices.Clone(w.panes)
	for _, b := range w.buckets {
		parts = append(parts, b)
	}
	slices.SortFunc(parts, func(a, b *bucket) int { return int(min(max(a.start-b.start, -1), 1)) })
	return parts
}
