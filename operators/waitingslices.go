package operators

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/joinstore"
)

// CountDroppedSlices counts slice values of waiting predictions whose column the configuration has no more: those predictions are in no slice of
// it, and count in the whole as ever.
const CountDroppedSlices = "slices_dropped"

// columnsNamed is added to the number of columns of a state that names them; states of builds before have the number alone.
const columnsNamed = 1 << 32

// sliceNames tells whose the slice values of waiting predictions are. In memory they are by column of the configuration, in a state by column
// that it names. A row on disk outlives states: there a value is one name, column and value with a zero byte between, so that it means the same
// under every configuration; nulls are left out. Rows that builds before wrote have their values in the order of positional.
type sliceNames struct {
	positional []string
	texts      []map[int32]string // by column: value → name in rows on disk
	dropped    int64              // values without a column, of the state at hand
}

// sliceNamesOf appends the names of an entry's slice values.
func (w *waiting) sliceNamesOf(dst []joinstore.Name, e int32) []joinstore.Name {
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
		dst = append(dst, joinstore.Name{Text: text, Set: true})
	}
	return dst
}

// eachSlice hands over the slice values of a row on disk with their columns; "" where that is not known.
func (s *sliceNames) eachSlice(names []joinstore.Name, flags byte, take func(column, value string)) {
	for i, n := range names {
		switch {
		case !n.Set:
		case flags&flagSlicesNamed != 0:
			column, value, _ := strings.Cut(n.Text, "\x00")
			take(column, value)
		case len(names) == len(s.positional):
			take(s.positional[i], n.Text)
		default:
			take("", n.Text)
		}
	}
}

// setSlices gives an entry the slice values of a row on disk, as far as the configuration has their columns.
func (w *waiting) setSlices(e int32, names []joinstore.Name, flags byte) {
	w.noSlices(e)
	w.eachSlice(names, flags, func(column, value string) {
		if c := slices.Index(w.cfg.Slices, column); c >= 0 {
			w.slicesOf(e)[c] = w.value(value)
		}
	})
}

func (w *waiting) noSlices(e int32) {
	for c := range w.slicesOf(e) {
		w.slicesOf(e)[c] = -1
	}
}

// droppedOf counts the values of a row on disk that have no column.
func (w *waiting) droppedOf(names []joinstore.Name, flags byte) {
	w.eachSlice(names, flags, func(column, _ string) {
		if !slices.Contains(w.cfg.Slices, column) {
			w.dropped++
		}
	})
}

// appendColumns appends the columns of the values in memory, and those of rows on disk that have no names.
func (w *waiting) appendColumns(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, columnsNamed+uint64(w.columns))
	for _, c := range w.cfg.Slices {
		dst = binenc.AppendString(dst, c)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.positional)))
	for _, c := range w.positional {
		dst = binenc.AppendString(dst, c)
	}
	return dst
}

// restoreColumns reads what appendColumns wrote, and returns the place of each column of the state in the configuration, -1 where it has it no more. A state
// of builds before has no names: as many columns as in the configuration are taken to be those; of another number none is known.
func (w *waiting) restoreColumns(r *binenc.Reader) (places []int) {
	n := r.Uvarint()
	if n < columnsNamed {
		if int(n) == w.columns {
			w.positional = w.cfg.Slices
			for c := range w.columns {
				places = append(places, c)
			}
			return places
		}
		if n > maxColumns {
			r.Failf("%d slice columns, allowed up to %d", n, maxColumns)
			return nil
		}
		w.log().Warn(fmt.Sprintf("slice columns: the checkpoint has %d and not their names, slices.columns has %d: predictions that wait are in no slice", n, w.columns), "slices.columns", w.cfg.Slices)
		return slices.Repeat([]int{-1}, int(n))
	}
	if n -= columnsNamed; n > maxColumns {
		r.Failf("%d slice columns, allowed up to %d", n, maxColumns)
		return nil
	}
	var had []string
	for range n {
		had = append(had, r.String(binenc.MaxName))
		places = append(places, slices.Index(w.cfg.Slices, had[len(had)-1]))
	}
	for range r.Count(1, maxColumns) {
		w.positional = append(w.positional, r.String(binenc.MaxName))
	}
	if r.Err() == nil && !slices.Equal(had, w.cfg.Slices) {
		w.log().Warn("slice columns: slices.columns has changed since the checkpoint: predictions that wait keep the values of columns that are there still, and are in no slice of the others",
			"checkpoint", had, "slices.columns", w.cfg.Slices)
	}
	return places
}

// maxColumns bounds what a checkpoint may claim.
const maxColumns = 1 << 12

func (w *waiting) log() *slog.Logger {
	if w.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return w.cfg.Log
}
