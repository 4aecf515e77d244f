package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/offline"
)

// fitData is the labelled rows of a file, and what of them each fit may see.
type fitData struct {
	file  string
	rows  metric.Rows
	parts []compare.Part // none where nothing is held out
	split *splitResult
}

// splitResult says which rows were fitted on and which held out.
type splitResult struct {
	Kind     string  `json:"kind"` // file, share or folds
	File     string  `json:"file,omitempty"`
	Share    float64 `json:"share,omitempty"`
	Folds    int     `json:"folds,omitempty"`
	Seed     uint64  `json:"seed"`
	FitRows  int     `json:"fit_rows"`
	HeldRows int     `json:"held_rows"`
}

func (s splitResult) String() string {
	switch s.Kind {
	case "file":
		return fmt.Sprintf("fitted on %d rows, scored on %d of %s", s.FitRows, s.HeldRows, s.File)
	case "folds":
		return fmt.Sprintf("%d folds of %d rows (seed %d), each row scored by the fit that has not seen it", s.Folds, s.HeldRows, s.Seed)
	}
	return fmt.Sprintf("fitted on %d rows, scored on %d others (share %g, seed %d)", s.FitRows, s.HeldRows, s.Share, s.Seed)
}

// read opens FILE, and the file of --holdout where share is 0 and one is named.
func (f fitFlags) read(cmd *cobra.Command, file string, share float64) (*fitData, error) {
	rows, at, err := f.labelledRows(f.inputFlags, file)
	if err != nil {
		return nil, err
	}
	d := &fitData{file: file, rows: offline.Compact(rows, at)}
	whole := func() metric.Rows { return d.rows }
	switch {
	case f.folds != 0:
		return d, f.splitFolds(d, rows, at)
	case share != 0:
		if len(at) < 2 {
			return nil, fmt.Errorf("%s: only one labelled row, at least 2 are needed to hold some out; one --method alone, without --holdout, is fitted on all", file)
		}
		fit, held := compare.Split(at, share, f.opt.Seed)
		part := compare.Part{Fit: offline.Once(rows, fit), Held: offline.Once(rows, held)}
		d.parts = []compare.Part{part}
		d.split = &splitResult{Kind: "share", Share: share, Seed: f.opt.Seed, FitRows: len(fit), HeldRows: len(held)}
	case f.holdout != "":
		in := f.inputFlags
		in.labels = f.holdoutLabels
		other, otherAt, err := f.labelledRows(in, f.holdout)
		if err != nil {
			return nil, err
		}
		if other.K != rows.K {
			return nil, fmt.Errorf("--holdout %s has %d classes, %s has %d", f.holdout, other.K, file, rows.K)
		}
		if other.Probs != rows.Probs {
			fmt.Fprintf(cmd.ErrOrStderr(), "one of %s and %s holds logits, the other probabilities\n", file, f.holdout)
		}
		held := offline.Compact(other, otherAt)
		d.parts = []compare.Part{{Fit: whole, Held: func() metric.Rows { return held }}}
		d.split = &splitResult{Kind: "file", File: f.holdout, Seed: f.opt.Seed, FitRows: len(at), HeldRows: len(otherAt)}
	}
	return d, nil
}

func (f fitFlags) splitFolds(d *fitData, rows metric.Rows, at []int) error {
	if f.folds > len(at) {
		return fmt.Errorf("%s: %d labelled rows, --folds %d needs as many", d.file, len(at), f.folds)
	}
	folds := compare.Folds(at, f.folds, f.opt.Seed)
	for i := range folds {
		var fit []int
		for j, fold := range folds {
			if j != i {
				fit = append(fit, fold...)
			}
		}
		// Made anew for each fit: all folds at once would be --folds times the file.
		d.parts = append(d.parts, compare.Part{
			Fit:  func() metric.Rows { return compare.Select(rows, fit) },
			Held: func() metric.Rows { return compare.Select(rows, folds[i]) },
		})
	}
	d.split = &splitResult{Kind: "folds", Folds: f.folds, Seed: f.opt.Seed, FitRows: len(at), HeldRows: len(at)}
	return nil
}

// labelledRows are the rows of a file, checked, and the numbers of those with a label.
func (f fitFlags) labelledRows(in inputFlags, file string) (metric.Rows, []int, error) {
	t, err := in.open(file)
	if err != nil {
		return metric.Rows{}, nil, err
	}
	if f.noWeights {
		t.Weight = nil
	}
	return offline.LabelledRows(file, t)
}
