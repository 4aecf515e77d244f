package offline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
)

// Rows returns the rows of an open file for evaluation, in float64 if the file has float64. The column weight gives
// their weights.
func Rows(file string, t *table.Table) (metric.Rows, error) {
	if t.Label == nil && t.NoLabel != nil {
		return metric.Rows{}, fmt.Errorf("%s: no labels: %w", file, t.NoLabel)
	}
	if t.Label == nil {
		const want = "no labels: none of the columns has a name of labels (label, y_true, target, …), and none that " +
			"--label names"
		return metric.Rows{}, fmt.Errorf("%s: %s", file, want)
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

// MaxSliceValues limits the number of slices in a report. A column with more values is an identifier, not a cohort.
const MaxSliceValues = 1000

// Slice is the report on the rows with one value of the column named by --by; "" if the column is null.
type Slice struct {
	Value   string        `json:"value"`
	Metrics metric.Report `json:"metrics"`

	Rows metric.Rows `json:"-"`
}

// EvaluateSlices evaluates the rows of each value of a text column, in the order of values.
func EvaluateSlices(t *table.Table, rows metric.Rows, column string, opt metric.Options) ([]Slice, error) {
	values, err := sliceColumn(t, column)
	if err != nil {
		return nil, err
	}
	at := make(map[string][]int)
	for i, v := range values {
		if at[v] = append(at[v], i); len(at) > MaxSliceValues {
			return nil, fmt.Errorf("column %s has more than %d values: --by makes a report for each", column,
				MaxSliceValues)
		}
	}
	var out []Slice
	for _, v := range slices.Sorted(maps.Keys(at)) {
		s := Slice{Value: v, Rows: compare.Select(rows, at[v])}
		if s.Metrics, err = metric.Evaluate(s.Rows, opt); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", column, v, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// sliceColumn returns the values of a text column by row. If the columns model and version have a single value, the
// table holds only that value.
func sliceColumn(t *table.Table, column string) ([]string, error) {
	if v := t.Slices[column]; v != nil {
		return v, nil
	}
	there := slices.Collect(maps.Keys(t.Slices))
	for name, v := range map[string]string{"model": t.Model, "version": t.Version} {
		if v == "" {
			continue
		}
		if name == column {
			return slices.Repeat([]string{v}, t.N), nil
		}
		there = append(there, name)
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("--by %s: no such text column; the file has none", column)
	}
	slices.Sort(there)
	return nil, fmt.Errorf("--by %s: no such text column; there are: %s", column, strings.Join(there, ", "))
}

// CalibrateTable replaces the scores by probabilities, in float32 unless double is true.
func CalibrateTable(c calibrator.Calibrator, t *table.Table, double bool, done func(rows int)) error {
	single := compare.Scores[float32]{Z: t.Scores32, K: t.K, Probs: t.Probs}
	long := compare.Scores[float64]{Z: t.Scores64, K: t.K, Probs: t.Probs}
	out := *t
	var err error
	switch {
	case double && long.Z != nil:
		out.Scores64 = make([]float64, len(long.Z))
		err = compare.Apply(c, out.Scores64, long, done)
	case double:
		out.Scores64, out.Scores32 = make([]float64, len(single.Z)), nil
		err = compare.Apply(c, out.Scores64, single, done)
	case long.Z != nil:
		out.Scores32, out.Scores64 = make([]float32, len(long.Z)), nil
		err = compare.Apply(c, out.Scores32, long, done)
	default:
		out.Scores32 = make([]float32, len(single.Z))
		err = compare.Apply(c, out.Scores32, single, done)
	}
	if err != nil {
		return err
	}
	for at := 0; at < t.N*t.K; at += t.K { // a row that cannot be calibrated becomes NaN
		if out.Scores32 != nil && out.Scores32[at] != out.Scores32[at] ||
			out.Scores64 != nil && out.Scores64[at] != out.Scores64[at] {
			if err := BadRow(t, false); err != nil {
				return err
			}
			return fmt.Errorf("row %d: %s makes NaN of it", at/t.K, c.Method())
		}
	}
	out.Probs = true
	*t = out
	return nil
}

// LabelledRows returns the rows of a table that have a label, and their numbers in the file.
func LabelledRows(file string, t *table.Table) (metric.Rows, []int, error) {
	rows, err := Rows(file, t)
	if err != nil {
		return rows, nil, err
	}
	if err := BadRow(t, true); err != nil {
		return rows, nil, fmt.Errorf("%s: %w", file, err)
	}
	at := compare.Labelled(rows.Labels)
	if len(at) == 0 {
		return rows, nil, fmt.Errorf("%s: none of the %d rows has a label", file, t.N)
	}
	return rows, at, nil
}

// Compact returns a copy of the rows with the given indices, or the rows themselves if that is all of them.
func Compact(rows metric.Rows, at []int) metric.Rows {
	if len(at) == len(rows.Labels) {
		return rows
	}
	return compare.Select(rows, at)
}

// Once returns a function that builds the rows at its first call.
func Once(rows metric.Rows, at []int) func() metric.Rows {
	var made *metric.Rows
	return func() metric.Rows {
		if made == nil {
			r := compare.Select(rows, at)
			made = &r
		}
		return *made
	}
}
