package window

import (
	"errors"
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

// rowsOf returns sums of those of the rows that are in parts of a window.
func (s *State) rowsOf(w *window, parts []*bucket, rows []acc.SampleRow) (*acc.Set, error) {
	env := s.stage.env
	set, err := env.NewSums(s.key.K)
	if err != nil {
		return nil, err
	}
	sc := stage.NewScorer(s.key.K)
	for i := range rows {
		at := rows[i].LabelTS
		if w.spec.Kind != "rows" {
			at = pipeline.PaneIndex(rows[i].TS, env.Pane) * env.Pane // a bucket has whole panes
		}
		if slices.ContainsFunc(parts, func(b *bucket) bool { return b.start <= at && at < b.end }) {
			if err := sc.Add(set, nil, &rows[i]); err != nil {
				return nil, err
			}
		}
	}
	return set, nil
}

// sumRows gives the windows sums of the labelled rows that they have.
func (s *State) sumRows(rows []acc.SampleRow) error {
	if !s.ofRows {
		return nil
	}
	s.ofRows = false
	for _, w := range s.windows {
		for _, b := range w.parts() {
			set, err := s.rowsOf(w, []*bucket{b}, rows)
			if err != nil {
				return err
			}
			if set.LabelledRows() == 0 {
				continue
			}
			if err := s.addTo(&b.raw, &b.cal, set, set); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns all buckets in ascending order.
func (w *window) parts() []*bucket {
	parts := slices.Clone(w.blocks)
	for _, b := range w.buckets {
		parts = append(parts, b)
	}
	slices.SortFunc(parts, func(a, b *bucket) int { return int(min(max(a.start-b.start, -1), 1)) })
	return parts
}
