package join

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/join/store"
)

// CountDroppedSlices counts slice values of waiting predictions whose column is no longer configured: these
// predictions are in no slice of it, but count in the whole.
const CountDroppedSlices = "slices_dropped"

// Slice values of waiting predictions are kept by configured column in memory, and by named column in a state. A row
// on disk outlives states: there a value is one name, the column and the value with a zero byte between, so that it
// means the same under every configuration; nulls are left out.

// sliceNamesOf appends the names of an entry's slice values.
func (w *memory) sliceNamesOf(dst []store.Name, e int32) []store.Name {
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
			text = w.cfg.Slices[c] + "\x00" + w.values[v]
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
func (w *buffer) setSlices(e int32, names []store.Name) {
	w.noSlices(e)
	eachSlice(names, func(column, value string) {
		if c := slices.Index(w.cfg.Slices, column); c >= 0 {
			w.slicesOf(e)[c] = w.value(value)
		}
	})
}

func (w *memory) noSlices(e int32) {
	for c := range w.slicesOf(e) {
		w.slicesOf(e)[c] = -1
	}
}

// droppedOf counts the values of a row on disk whose column is not configured.
func (w *buffer) droppedOf(names []store.Name) {
	eachSlice(names, func(column, _ string) {
		if !slices.Contains(w.cfg.Slices, column) {
			w.dropped++
		}
	})
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
func (w *buffer) restoreColumns(r *binenc.Reader) (places []int) {
	var had []string
	for range r.Count(1, maxColumns) {
		had = append(had, r.String(binenc.MaxName))
		places = append(places, slices.Index(w.cfg.Slices, had[len(had)-1]))
	}
	if r.Err() == nil && !slices.Equal(had, w.cfg.Slices) {
		w.log.Warn("slice columns: slices.columns has changed since the checkpoint: waiting predictions keep "+
			"the values of the columns that remain, and are in no slice of new columns",
			"checkpoint", had, "slices.columns", w.cfg.Slices)
	}
	return places
}

// maxColumns bounds the number of columns that a checkpoint may claim.
const maxColumns = 1 << 12
