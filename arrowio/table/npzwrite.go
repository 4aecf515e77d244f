package table

import (
	"fmt"
	"os"
	"slices"

	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// npzWriter notes the first error.
type npzWriter struct {
	*npy.Writer
	rows int
	err  error
}

func (a *npzWriter) note(err error) {
	if a.err == nil {
		a.err = err
	}
}

// column writes a column of N rows, where the table has it.
func column[T wire.Number](a *npzWriter, name, dtype string, v []T, shape ...int) {
	if v != nil {
		a.note(a.WriteArray(name, dtype, record.Bytes(v), append([]int{a.rows}, shape...)...))
	}
}

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
	a := &npzWriter{Writer: npy.NewWriter(w), rows: t.N}
	if t.Scores64 != nil {
		column(a, scores, "<f8", t.Scores64, t.K)
	} else {
		a.note(a.WriteArray(scores, "<f4", record.Bytes(t.Scores32), t.N, t.K))
	}
	column(a, "label", "<i4", t.Label)
	column(a, "ts", "<M8[ns]", t.TS)
	if t.IDs != nil {
		a.note(a.Text("id", t.IDs))
	}
	column(a, "features", "<f4", t.Features, t.D)
	column(a, "weight", "<f4", t.Weight)
	column(a, "served", "<f4", t.Served)
	for _, c := range [][2]string{{"model", t.Model}, {"version", t.Version}} {
		if c[1] != "" {
			a.note(a.Text(c[0], slices.Repeat([]string{c[1]}, t.N)))
		}
	}
	for _, name := range sortedKeys(t.Slices) {
		a.note(a.Text(name, t.Slices[name]))
	}
	a.note(a.Close())
	return a.err
}
