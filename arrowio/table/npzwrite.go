package table

import (
	"fmt"
	"os"
	"slices"

	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/npy"
)

// writeArrays writes t as numpy.savez would: uncompressed arrays named as the schema's columns. Labels that are not
// known are -1, times are datetime64[ns], text is of fixed width.
func writeArrays(w *os.File, t *Table) error {
	scores := "logits"
	if t.Probs {
		scores = "probs"
	}
	if len(t.Scores32)+len(t.Scores64) != t.N*t.K {
		return fmt.Errorf("%d scores for %d rows of %d classes", len(t.Scores32)+len(t.Scores64), t.N, t.K)
	}
	z := npy.NewWriter(w)
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if t.Scores64 != nil {
		add(z.Array(scores, "<f8", record.Bytes(t.Scores64), t.N, t.K))
	} else {
		add(z.Array(scores, "<f4", record.Bytes(t.Scores32), t.N, t.K))
	}
	if t.Label != nil {
		add(z.Array("label", "<i4", record.Bytes(t.Label), t.N))
	}
	if t.TS != nil {
		add(z.Array("ts", "<M8[ns]", record.Bytes(t.TS), t.N))
	}
	if t.IDs != nil {
		add(z.Text("id", t.IDs))
	}
	if t.Features != nil {
		add(z.Array("features", "<f4", record.Bytes(t.Features), t.N, t.D))
	}
	for _, c := range []struct {
		name string
		v    []float32
	}{{"weight", t.Weight}, {"served", t.Served}} {
		if c.v != nil {
			add(z.Array(c.name, "<f4", record.Bytes(c.v), t.N))
		}
	}
	for _, c := range [][2]string{{"model", t.Model}, {"version", t.Version}} {
		if c[1] != "" {
			add(z.Text(c[0], slices.Repeat([]string{c[1]}, t.N)))
		}
	}
	for _, name := range sortedKeys(t.Slices) {
		add(z.Text(name, t.Slices[name]))
	}
	for _, err := range append(errs, z.Close()) {
		if err != nil {
			return err
		}
	}
	return nil
}
