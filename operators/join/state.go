package join

import (
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// AppendState appends the tables of names, the entries in memory in arrival order, the rows on disk, and the joined
// rows.
func (w *buffer) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(w.models)))
	for _, m := range w.models {
		dst = binenc.AppendString(binenc.AppendString(dst, m.Model), m.Version)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.values)))
	for _, v := range w.values {
		dst = binenc.AppendString(dst, v)
	}
	dst = appendColumns(dst, w.names)
	dst = binenc.AppendUvarint(dst, uint64(w.live))
	for e := range w.inOrder {
		dst = w.appendEntry(dst, e)
	}
	dst = append(dst, binenc.Flags(w.store != nil, w.sharedAt != noShared))
	if w.sharedAt != noShared {
		dst = binenc.AppendVarint(dst, w.sharedAt)
	}
	if w.store != nil {
		dst = w.store.AppendState(dst)
	}
	return w.joined().AppendState(dst), nil
}

func (w *memory) appendEntry(dst []byte, e int32) []byte {
	p := &w.entries[e]
	dst = append(dst, p.id[:]...)
	dst = append(dst, binenc.Flags(p.label >= 0, p.named, p.used, p.probs, p.d > 0))
	dst = binenc.AppendVarint(dst, int64(p.model))
	dst = binenc.AppendVarint(dst, p.ts)
	if p.label >= 0 {
		return binenc.AppendUvarint(dst, uint64(p.label))
	}
	dst = binenc.AppendFixed32(dst, math.Float32bits(p.served))
	dst = binenc.AppendFixed32(dst, math.Float32bits(p.weight))
	for _, s := range w.slicesOf(e) {
		dst = binenc.AppendVarint(dst, int64(s))
	}
	dst = binenc.AppendUvarint(dst, uint64(p.k))
	return w.appendFeatures(binenc.AppendFloats(dst, w.row(p)), p)
}

// Files returns the files that the latest AppendState refers to.
func (w *buffer) Files() []pipeline.File {
	var out []pipeline.File
	if w.store != nil {
		for _, f := range w.store.Files() {
			out = append(out, pipeline.File(f))
		}
	}
	if w.met != nil {
		for _, f := range w.met.Files() {
			out = append(out, pipeline.File(f))
		}
	}
	return out
}

// restore fills an empty buffer.
func (w *buffer) restore(src []byte, fetch pipeline.Fetch) error {
	r := binenc.NewReader(src)
	w.reset(w.cfg)
	for range r.Count(2, math.MaxInt32) {
		w.model(arrowio.ModelKey{Model: r.String(binenc.MaxName), Version: r.String(binenc.MaxName)})
	}
	for range r.Count(1, math.MaxInt32) {
		w.value(r.String(binenc.MaxName))
	}
	places := w.restoreColumns(&r, w.log)
	n := r.Count(18, 1<<31)
	w.entries = make([]entry, 0, n)
	for range n {
		w.restoreEntry(&r, places)
		if r.Err() != nil {
			return r.Err()
		}
	}
	flags := r.Int("flags of the buffer", 0, 3)
	onDisk := flags&1 != 0
	if flags&2 != 0 {
		w.sharedAt = r.Varint()
	}
	if r.Err() == nil && onDisk {
		w.openStore()
		if err := w.store.Restore(&r, fetch, w.restored); err != nil {
			return err
		}
	}
	if r.Err() == nil {
		if err := w.joined().Restore(&r, fetch); err != nil {
			return err
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	w.forget()
	return nil
}

func (w *buffer) restoreEntry(r *binenc.Reader, places []int) {
	var id arrowio.ID
	copy(id[:], r.Raw(16))
	flags := r.Byte()
	if r.Err() != nil {
		return
	}
	model := restoreIndex(r, "model", len(w.models))
	label, used := flags&flagLabel != 0, flags&flagUsed != 0
	if !label && model < 0 {
		r.Failf("a prediction without a model")
		return
	}
	e := w.add(id, false)
	p := &w.entries[e]
	p.named, p.used, p.probs, p.model = flags&flagNamed != 0, used, flags&flagProbs != 0, model
	*w.n.of(label, used)++
	p.ts = r.Varint()
	if label {
		p.label = int32(r.Int("label", 0, math.MaxInt32))
		if p.named && p.model < 0 {
			r.Failf("a label that names no model says that it does")
		}
		return
	}
	p.served, p.weight = math.Float32frombits(r.Fixed32()), math.Float32frombits(r.Fixed32())
	w.noSlices(e)
	for _, c := range places {
		switch v := restoreIndex(r, "slice value", len(w.values)); {
		case c >= 0:
			w.slicesOf(e)[c] = v
		case v >= 0:
			w.dropped++
		}
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
