package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/feed"
)

// inputFlags name arrays of npz files; they hold for every FILE argument.
type inputFlags struct{ array, labels string }

func (f *inputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.array, "array", "", "scores `array` of npz files, where FILE does not name it")
	cmd.Flags().StringVar(&f.labels, "labels", "", "labels `array` of npz files")
}

func (f inputFlags) open(file string) (*table.Table, error) {
	return feed.OpenTable(file, table.Options{Array: f.array, Labels: f.labels})
}

// metricRows are the rows of an opened file for evaluation, in float64 where the file is. Column weight weighs them.
func metricRows(file string, t *table.Table) (metric.Rows, error) {
	if t.Label == nil {
		return metric.Rows{}, fmt.Errorf("%s: no labels: a column label is needed, or in npz files an array that --labels names", file)
	}
	r := metric.Rows{K: t.K, F32: t.Scores32, F64: t.Scores64, Probs: t.Probs, Labels: t.Label}
	if t.Weight != nil {
		r.W = make([]float64, t.N)
		for i, w := range t.Weight {
			r.W[i] = float64(w)
		}
	}
	return r, nil
}
