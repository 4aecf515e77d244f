package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteCSV writes t so that Open gives the same numbers back.
func WriteCSV(w io.Writer, t *Table) error {
	if len(t.Scores32)+len(t.Scores64) != t.N*t.K {
		return fmt.Errorf("%d scores for %d rows of %d classes", len(t.Scores32)+len(t.Scores64), t.N, t.K)
	}
	header, cells := t.csvColumns()
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	row := make([]string, len(cells))
	for i := range t.N {
		for j, cell := range cells {
			row[j] = cell(i)
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// csvColumns are the header and, for each column, the cell of a row.
func (t *Table) csvColumns() (header []string, cells []func(i int) string) {
	add := func(name string, cell func(i int) string) { header, cells = append(header, name), append(cells, cell) }
	if t.IDs != nil {
		add("id", func(i int) string { return t.IDs[i] })
	}
	if t.TS != nil {
		add("ts", func(i int) string { return time.Unix(0, t.TS[i]).UTC().Format(time.RFC3339Nano) })
	}
	scores := "logits_"
	if t.Probs {
		scores = "probs_"
	}
	for k := range t.K {
		add(scores+strconv.Itoa(k), func(i int) string { return t.scoreCell(i*t.K + k) })
	}
	if t.Label != nil {
		add("label", t.labelCell)
	}
	for d := range t.D {
		add("features_"+strconv.Itoa(d), func(i int) string { return cellOf(float64(t.Features[i*t.D+d]), 32) })
	}
	if t.Served != nil {
		add("served", func(i int) string { return cellOf(float64(t.Served[i]), 32) })
	}
	if t.Weight != nil {
		add("weight", func(i int) string { return cellOf(float64(t.Weight[i]), 32) })
	}
	for _, c := range [][2]string{{"model", t.Model}, {"version", t.Version}} {
		if c[1] != "" {
			add(c[0], func(int) string { return c[1] })
		}
	}
	for _, name := range sortedKeys(t.Slices) {
		add(name, func(i int) string { return t.Slices[name][i] })
	}
	return header, cells
}

func (t *Table) scoreCell(at int) string {
	if t.Scores64 != nil {
		return cellOf(t.Scores64[at], 64)
	}
	return cellOf(float64(t.Scores32[at]), 32)
}

// labelCell is empty where the label is not known.
func (t *Table) labelCell(i int) string {
	if t.Label[i] < 0 {
		return ""
	}
	return strconv.Itoa(int(t.Label[i]))
}

// cellOf is the shortest decimal that reads back as x; empty for NaN.
func cellOf(x float64, bits int) string {
	if x != x {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}
