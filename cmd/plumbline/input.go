package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Size() == 0 {
		return nil, fmt.Errorf("read %s: the file is empty", file)
	}
	return table.Open(file, table.Options{Array: f.array, Labels: f.labels})
}

// defaultModel names a model whose file says none: the file's name, with that of the array where one is named.
func defaultModel(file, array string) string {
	if i := strings.LastIndex(file, ".npz:"); i >= 0 {
		file, array = file[:i+len(".npz")], file[i+len(".npz:"):]
	}
	name := filepath.Base(file)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if array != "" {
		name += "-" + array
	}
	return name
}

// feedRows reads a file for the feed, with those of the slice columns that it has. Messages carry float32 scores.
func (f inputFlags) feedRows(file string, slices []string) (*feed.Rows, error) {
	t, err := f.open(file)
	if err != nil {
		return nil, err
	}
	for _, column := range []string{"model", "version"} {
		if t.Slices[column] != nil {
			return nil, fmt.Errorf("%s: column %s has several values: one model and version a file, or none to give them by --model and --version", file, column)
		}
	}
	rows := &feed.Rows{
		Model: t.Model, Version: t.Version, N: t.N, K: t.K, Scores: t.Scores32, Probs: t.Probs, Label: t.Label,
		IDs: t.IDs, TS: t.TS, D: t.D, Features: t.Features, Served: t.Served, Weight: t.Weight,
	}
	if rows.Model == "" {
		rows.Model = defaultModel(file, f.array)
	}
	if t.Scores64 != nil {
		rows.Scores = make([]float32, len(t.Scores64))
		for i, z := range t.Scores64 {
			rows.Scores[i] = float32(z)
		}
	}
	for _, name := range slices {
		if values := t.Slices[name]; values != nil {
			rows.Slices = append(rows.Slices, feed.Column{Name: name, Values: values})
		}
	}
	return rows, nil
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
