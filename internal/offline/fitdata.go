package offline

import (
	"cmp"
	"fmt"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/feed"
)

// FitData holds the labelled rows of a file and which of them each fit may see.
type FitData struct {
	file  string
	rows  metric.Rows
	parts []compare.Part // empty if nothing is held out
	split *Split
}

// Split describes which rows were fitted on and which were held out.
type Split struct {
	Kind     string  `json:"kind"` // file, share or folds
	File     string  `json:"file,omitempty"`
	Share    float64 `json:"share,omitempty"`
	Folds    int     `json:"folds,omitempty"`
	Seed     uint64  `json:"seed"`
	FitRows  int     `json:"fit_rows"`
	HeldRows int     `json:"held_rows"`
}

func (s Split) String() string {
	switch s.Kind {
	case "file":
		return fmt.Sprintf("fitted on %d rows, scored on %d of %s", s.FitRows, s.HeldRows, s.File)
	case "folds":
		return fmt.Sprintf("%d folds of %d rows (seed %d), each row scored by the fit that has not seen it", s.Folds,
			s.HeldRows, s.Seed)
	}
	return fmt.Sprintf("fitted on %d rows, scored on %d others (share %g, seed %d)", s.FitRows, s.HeldRows, s.Share,
		s.Seed)
}

// FitOptions say which rows to fit on and which to hold out. Messages name the flags of plumbline fit.
type FitOptions struct {
	Table         table.Options
	Only          map[string]string // values of the columns model and version; rows with others are left out
	Holdout       string            // file to score on
	HoldoutLabels string
	Share         float64 // or the share of rows to hold out
	Folds         int     // or the number of folds of a cross-validation
	Seed          uint64
}

// Read opens a file, and the held-out file if there is one. It calls note with a text about possible mistakes.
func (f FitOptions) Read(file string, note func(string)) (*FitData, error) {
	share := f.Share
	rows, at, err := f.labelledRows(f.Table.Labels, file)
	if err != nil {
		return nil, err
	}
	d := &FitData{file: file, rows: Compact(rows, at)}
	whole := func() metric.Rows { return d.rows }
	switch {
	case f.Folds != 0:
		return d, f.splitFolds(d, rows, at)
	case share != 0:
		if len(at) < 2 {
			return nil, fmt.Errorf("%s: only one labelled row, at least 2 are needed to hold some out; "+
				"one --method alone, without --holdout, is fitted on all", file)
		}
		fit, held := compare.Split(at, share, f.Seed)
		part := compare.Part{Fit: Once(rows, fit), Held: Once(rows, held)}
		d.parts = []compare.Part{part}
		d.split = &Split{Kind: "share", Share: share, Seed: f.Seed, FitRows: len(fit), HeldRows: len(held)}
	case f.Holdout != "":
		other, otherAt, err := f.labelledRows(cmp.Or(f.HoldoutLabels, f.Table.Labels), f.Holdout)
		if err != nil {
			return nil, err
		}
		if other.K != rows.K {
			return nil, fmt.Errorf("--holdout %s has %d classes, %s has %d", f.Holdout, other.K, file, rows.K)
		}
		if other.Probs != rows.Probs {
			note(fmt.Sprintf("one of %s and %s holds logits, the other probabilities", file, f.Holdout))
		}
		held := Compact(other, otherAt)
		d.parts = []compare.Part{{Fit: whole, Held: func() metric.Rows { return held }}}
		d.split = &Split{Kind: "file", File: f.Holdout, Seed: f.Seed, FitRows: len(at), HeldRows: len(otherAt)}
	}
	return d, nil
}

func (f FitOptions) splitFolds(d *FitData, rows metric.Rows, at []int) error {
	if f.Folds > len(at) {
		return fmt.Errorf("%s: %d labelled rows, --folds %d needs as many", d.file, len(at), f.Folds)
	}
	folds := compare.Folds(at, f.Folds, f.Seed)
	for i := range folds {
		var fit []int
		for j, fold := range folds {
			if j != i {
				fit = append(fit, fold...)
			}
		}
		// Built again for each fit, because all folds at once would take --folds times the memory of the file.
		d.parts = append(d.parts, compare.Part{
			Fit:  func() metric.Rows { return compare.Select(rows, fit) },
			Held: func() metric.Rows { return compare.Select(rows, folds[i]) },
		})
	}
	d.split = &Split{Kind: "folds", Folds: f.Folds, Seed: f.Seed, FitRows: len(at), HeldRows: len(at)}
	return nil
}

// labelledRows returns the rows of a file, checked, and the indices of those with a label.
func (f FitOptions) labelledRows(labels, file string) (metric.Rows, []int, error) {
	of := f.Table
	of.Labels = labels
	t, err := feed.OpenTable(file, of)
	if err != nil {
		return metric.Rows{}, nil, err
	}
	keep, err := choose(t, f.Only, file == f.Holdout) // a file to score on may be that of one version
	if err != nil {
		return metric.Rows{}, nil, fmt.Errorf("%s: %w", file, err)
	}
	noteMixed(of, file, t, "taken together, and a calibrator fits one best: --COLUMN chooses one")
	rows, at, err := LabelledRows(file, t)
	if err == nil && keep != nil {
		rows = compare.Select(rows, keep)
		at = compare.Labelled(rows.Labels)
	}
	if err == nil && of.Note != nil {
		if n := len(at); 1 < n && n < fewRows && f.Folds == 0 && f.Holdout == "" {
			of.Note(fmt.Sprintf("%s: %d rows are few: --folds %d tells whether the fit helps on others", file, n,
				min(n, 5)))
		}
		if zeros := zeroNote(rows); zeros != "" {
			of.Note(file + ": " + zeros)
		}
	}
	return rows, at, err
}
