package operators

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/joinstore"
	"github.com/plumbline/plumbline/pipeline"
)

// AppendState appends tables, the entries in memory in arrival order, the mark, the rows on disk.
func (w *waiting) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(w.models)))
	for _, m := range w.models {
		dst = binenc.AppendString(binenc.AppendString(dst, m.Model), m.Version)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.values)))
	for _, v := range w.values {
		dst = binenc.AppendString(dst, v)
	}
	dst = binenc.AppendUvarint(dst, uint64(w.columns))
	dst = binenc.AppendUvarint(dst, uint64(w.live))
	before, marked := 0, false
	for e := w.oldest; e >= 0; e = w.entries[e].next {
		if marked = marked || e == w.mark; !marked {
			before++
		}
		dst = w.appendEntry(dst, e)
	}
	dst = binenc.AppendUvarint(dst, uint64(before))
	if w.store == nil {
		return append(dst, 0), nil
	}
	dst = binenc.AppendUvarint(append(dst, 1), w.markRow)
	return w.store.AppendState(dst), nil
}

func (w *waiting) appendEntry(dst []byte, e int32) []byte {
	p := &w.entries[e]
	dst = append(dst, p.id[:]...)
	dst = append(dst, bits(p.label >= 0, p.named, p.used, p.probs, p.d > 0))
	dst = binenc.AppendVarint(dst, int64(p.model))
	if p.label >= 0 {
		dst = binenc.AppendVarint(dst, p.labelTS)
		return binenc.AppendUvarint(dst, uint64(p.label))
	}
	dst = binenc.AppendVarint(dst, p.ts)
	if p.used {
		return dst
	}
	// The order is that of the first version.
	dst = binenc.AppendFixed32(dst, math.Float32bits(p.served))
	dst = binenc.AppendFixed32(dst, math.Float32bits(p.weight))
	for _, s := range w.slicesOf(e) {
		dst = binenc.AppendVarint(dst, int64(s))
	}
	dst = binenc.AppendUvarint(dst, uint64(p.k))
	for _, z := range w.row(p) {
		dst = binenc.AppendFixed32(dst, math.Float32bits(z))
	}
	return w.appendFeatures(dst, p)
}

// Files are those that the latest AppendState refers to.
func (w *waiting) Files() []pipeline.File {
	if w.store == nil {
		return nil
	}
	var out []pipeline.File
	for _, f := range w.store.Files() {
		out = append(out, pipeline.File(f))
	}
	return out
}

// restore fills an empty buffer. A state of checkpoint version 1 ends after the entries.
func (w *waiting) restore(src []byte, fetch pipeline.Fetch) error {
	r := binenc.NewReader(src)
	w.reset(w.cfg)
	for range r.Count(2, 1<<20) {
		w.model(arrowio.ModelKey{Model: r.String(maxName), Version: r.String(maxName)})
	}
	for range r.Count(1, 1<<24) {
		w.value(r.String(maxName))
	}
	if c := int(r.Uvarint()); r.Err() == nil && c != w.columns {
		return errColumns(c, w.columns)
	}
	n := r.Count(18, 1<<31)
	w.entries, w.index = make([]entry, 0, n), make(map[arrowio.ID]int32, n)
	for range n {
		w.restoreEntry(&r)
		if r.Err() != nil {
			break
		}
	}
	if r.Len() == 0 { // or an error
		return r.Err()
	}
	w.mark = w.oldest
	for range r.Int("entries before the mark", 0, int64(w.live)) {
		w.mark = w.entries[w.mark].next
	}
	if r.Byte() == 0 {
		return r.Close()
	}
	w.openStore()
	w.markRow = r.Uvarint()
	if err := w.store.Restore(&r, fetch, w.visit); err != nil {
		return err
	}
	if w.markRow > w.store.Next() {
		r.Failf("the mark is at row %d of %d", w.markRow, w.store.Next())
	}
	return r.Close()
}

// visit counts a row on disk.
func (w *waiting) visit(_ uint64, st joinstore.State, row *joinstore.Row) error {
	if len(row.Body) == 0 {
		return fmt.Errorf("join store: a row without a body")
	}
	*w.n.of(row.Body[0]&flagLabel != 0, st != stateWaiting)++
	return nil
}

func (w *waiting) restoreEntry(r *binenc.Reader) {
	var id arrowio.ID
	copy(id[:], r.Raw(16))
	flags := r.Byte()
	if r.Err() != nil {
		return
	}
	e := w.add(id)
	p := &w.entries[e]
	p.named, p.used, p.probs = flags&flagNamed != 0, flags&flagUsed != 0, flags&flagProbs != 0
	p.model = restoreIndex(r, "model", len(w.models))
	*w.n.of(flags&flagLabel != 0, p.used)++
	if flags&flagLabel != 0 {
		p.labelTS, p.label = r.Varint(), int32(r.Int("label", 0, math.MaxInt32))
		if p.named && p.model < 0 {
			r.Failf("a label that names no model says that it does")
		}
		return
	}
	if p.model < 0 {
		r.Failf("a prediction without a model")
	}
	if p.ts = r.Varint(); p.used {
		return
	}
	p.served, p.weight = math.Float32frombits(r.Fixed32()), math.Float32frombits(r.Fixed32())
	for i := range w.columns {
		w.slicesOf(e)[i] = restoreIndex(r, "slice value", len(w.values))
	}
	w.readRow(r, e, flags)
}

// restoreIndex reads an index into a table of n; -1 = none.
func restoreIndex(r *binenc.Reader, name string, n int) int32 {
	i := r.Varint()
	if i < -1 || i >= int64(n) {
		r.Failf("%s %d, allowed -1 to %d", name, i, n-1)
		return -1
	}
	return int32(i)
}
