package join

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/join/store"
)

// CountDroppedSlices counts slice values of waiting predictions whose column is no longer configured: these
// predictions are in no slice of it, but count in the whole.
const CountDroppedSlices = "slices_dropped"

// sliceTable has the slice values of waiting predictions. They are kept by configured column in memory, and by named
// column in a state. A row on disk outlives states: there a value is one name, the column and the value with a zero
// byte between, so that it means the same under every configuration; nulls are left out.
type sliceTable struct {
	names   []string // of the columns, Options.Slices
	columns int      // how many there are
	slices  []int32  // by entry and column, index of values; -1 = null
	values  []string
	valueIx map[string]int32
	texts   []map[int32]string // by column: value number → name in rows on disk
}

// slicesOf returns the slice values of a prediction.
func (w *sliceTable) slicesOf(e int32) []int32 {
	return w.slices[int(e)*w.columns : (int(e)+1)*w.columns]
}

// takeSlices gives an entry the slice values of row i.
func (w *sliceTable) takeSlices(e int32, b *arrowio.Batch, i int) {
	values := w.slicesOf(e)
	for c := range values {
		values[c] = w.valueIn(b, w.names[c], i)
	}
}

func (w *sliceTable) valueIn(b *arrowio.Batch, column string, i int) int32 {
	for s := range b.Slices {
		if b.Slices[s].Name == column && b.Slices[s].Index[i] >= 0 {
			return w.value(b.Slices[s].Values[b.Slices[s].Index[i]])
		}
	}
	return -1
}

func (w *sliceTable) value(v string) int32 {
	i, ok := w.valueIx[v]
	if !ok {
		i = int32(len(w.values))
		w.values = append(w.values, v)
		w.valueIx[v] = i
	}
	return i
}

// forgetValues empties the table of values and returns it; renumber follows for each prediction.
func (w *sliceTable) forgetValues() []string {
	old := w.values
	w.values, w.valueIx = nil, map[string]int32{}
	w.texts = nil // by the indices of before
	return old
}

// renumber gives an entry's values, which are numbered as in old, their numbers in the table.
func (w *sliceTable) renumber(e int32, old []string) {
	of := w.slicesOf(e)
	for i, v := range of {
		if v >= 0 {
			of[i] = w.value(old[v])
		}
	}
}

// sliceNamesOf appends the names of an entry's slice values.
func (w *sliceTable) sliceNamesOf(dst []store.Name, e int32) []store.Name {
	if w.texts == nil {
		w.texts = make([]map[int32]string, w.columns)
	}
	for c, v := range w.slicesOf(e) {
		if v < 0 {
			continue
		}
		text, ok := w.texts[c][v]
		if !ok {
			if w.texts[c] == nil {
				w.texts[c] = map[int32]string{}
			}
			text = w.names[c] + "\x00" + w.values[v]
			w.texts[c][v] = text
		}
		dst = append(dst, store.Name{Text: text, Set: true})
	}
	return dst
}

// eachSlice calls take for each slice value of a row on disk.
func eachSlice(names []store.Name, take func(column, value string)) {
	for _, n := range names {
		column, value, _ := strings.Cut(n.Text, "\x00")
		take(column, value)
	}
}

// setSlices gives an entry the slice values of a row on disk whose columns are configured.
func (w *sliceTable) setSlices(e int32, names []store.Name) {
	w.noSlices(e)
	eachSlice(names, func(column, value string) {
		if c := slices.Index(w.names, column); c >= 0 {
			w.slicesOf(e)[c] = w.value(value)
		}
	})
}

func (w *sliceTable) noSlices(e int32) {
	for c := range w.slicesOf(e) {
		w.slicesOf(e)[c] = -1
	}
}

// droppedOf counts the values of a row on disk whose column is not configured.
func (w *sliceTable) droppedOf(names []store.Name) (n int64) {
	eachSlice(names, func(column, _ string) {
		if !slices.Contains(w.names, column) {
			n++
		}
	})
	return n
}

// appendColumns appends the columns of the values in memory.
func appendColumns(dst []byte, columns []string) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(columns)))
	for _, c := range columns {
		dst = binenc.AppendString(dst, c)
	}
	return dst
}

// restoreColumns reads what appendColumns wrote. It returns the configured index of each column of the state, -1 for
// columns that are no longer configured.
func (w *sliceTable) restoreColumns(r *binenc.Reader, log *slog.Logger) (places []int) {
	var had []string
	for range r.Count(1, maxColumns) {
		had = append(had, r.String(binenc.MaxName))
		places = append(places, slices.Index(w.names, had[len(had)-1]))
	}
	if r.Err() == nil && !slices.Equal(had, w.names) {
		log.Warn("slice columns: slices.columns has changed since the checkpoint: waiting predictions keep "+
			"the values of the columns that remain, and are in no slice of new columns",
			"checkpoint", had, "slices.columns", w.names)
	}
	return places
}

// maxColumns bounds the number of columns that a checkpoint may claim.
const maxColumns = 1 << 12
