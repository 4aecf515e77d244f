package operators

import (
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// entry is a waiting prediction (label < 0) or a waiting label.
type entry struct {
	id             arrowio.ID
	ts, labelTS    int64
	label          int32
	model          int32 // index of waiting.models; -1 = a label that names none
	named, used    bool
	probs          bool
	k              int
	slot           int32 // of pools[k]
	served, weight float32
	slices         []int32 // by configured column, index of waiting.values; -1 = null
	chain          int32   // next entry of the same id
	prev, next     int32   // arrival order
}

// waiting is the join's bounded buffer: entries in arrival order, found by id; score rows in one slab per K,
// so that a row costs no allocation once the buffer has grown to its working size.
type waiting struct {
	columns        int
	entries        []entry
	free           []int32
	index          map[arrowio.ID]int32
	oldest, newest int32
	live           int
	pools          map[int]*pool
	models         []arrowio.ModelKey
	modelIx        map[arrowio.ModelKey]int32
	values         []string
	valueIx        map[string]int32
}

type pool struct {
	z    []float32
	free []int32
}

func (w *waiting) reset(columns int) {
	*w = waiting{columns: columns, index: map[arrowio.ID]int32{}, oldest: -1, newest: -1, pools: map[int]*pool{},
		modelIx: map[arrowio.ModelKey]int32{}, valueIx: map[string]int32{}}
}

func (w *waiting) first(id arrowio.ID) (int32, bool) {
	e, ok := w.index[id]
	return e, ok
}

func (w *waiting) hasPrediction(id arrowio.ID, key arrowio.ModelKey) bool {
	for e, ok := w.first(id); ok && e >= 0; e = w.entries[e].chain {
		if w.entries[e].label < 0 && w.models[w.entries[e].model] == key {
			return true
		}
	}
	return false
}

// add appends an empty entry for id, first in its chain and newest in arrival.
func (w *waiting) add(id arrowio.ID) int32 {
	var e int32
	if n := len(w.free); n > 0 {
		e, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.entries = append(w.entries, entry{})
		e = int32(len(w.entries) - 1)
	}
	p := &w.entries[e]
	*p = entry{id: id, label: -1, model: -1, slot: -1, chain: -1, prev: w.newest, next: -1, slices: p.slices[:0]}
	if head, ok := w.index[id]; ok {
		p.chain = head
	}
	w.index[id] = e
	if w.newest >= 0 {
		w.entries[w.newest].next = e
	} else {
		w.oldest = e
	}
	w.newest = e
	w.live++
	return e
}

func (w *waiting) remove(e int32) {
	p := &w.entries[e]
	if head := w.index[p.id]; head == e {
		if p.chain < 0 {
			delete(w.index, p.id)
		} else {
			w.index[p.id] = p.chain
		}
	} else {
		for head >= 0 && w.entries[head].chain != e {
			head = w.entries[head].chain
		}
		w.entries[head].chain = p.chain
	}
	if p.prev >= 0 {
		w.entries[p.prev].next = p.next
	} else {
		w.oldest = p.next
	}
	if p.next >= 0 {
		w.entries[p.next].prev = p.prev
	} else {
		w.newest = p.prev
	}
	if p.slot >= 0 {
		w.pools[p.k].free = append(w.pools[p.k].free, p.slot)
	}
	w.free = append(w.free, e)
	w.live--
}

func (w *waiting) model(key arrowio.ModelKey) int32 {
	i, ok := w.modelIx[key]
	if !ok {
		i = int32(len(w.models))
		w.models = append(w.models, key)
		w.modelIx[key] = i
	}
	return i
}

func (w *waiting) value(v string) int32 {
	i, ok := w.valueIx[v]
	if !ok {
		i = int32(len(w.values))
		w.values = append(w.values, v)
		w.valueIx[v] = i
	}
	return i
}

func (w *waiting) setPrediction(e int32, b *arrowio.Batch, i int, key arrowio.ModelKey, columns []string) {
	p := &w.entries[e]
	p.ts, p.model, p.k, p.probs = b.TS[i], w.model(key), b.K, b.Probs
	p.served, p.weight = float32(math.NaN()), 1
	if b.Served != nil {
		p.served = b.Served[i]
	}
	if b.Weight != nil {
		p.weight = b.Weight[i]
	}
	p.slot = w.slot(b.K)
	copy(w.row(p), b.Scores[i*b.K:(i+1)*b.K])
	p.slices = p.slices[:0]
	for _, c := range columns {
		p.slices = append(p.slices, w.sliceValue(b, c, i))
	}
}

func (w *waiting) sliceValue(b *arrowio.Batch, column string, i int) int32 {
	for s := range b.Slices {
		if b.Slices[s].Name == column && b.Slices[s].Index[i] >= 0 {
			return w.value(b.Slices[s].Values[b.Slices[s].Index[i]])
		}
	}
	return -1
}

func (w *waiting) setLabel(e int32, ts int64, label int32, key arrowio.ModelKey, named bool) {
	p := &w.entries[e]
	p.labelTS, p.label, p.named = ts, label, named
	if named {
		p.model = w.model(key)
	}
}

func (w *waiting) slot(k int) int32 {
	p := w.pools[k]
	if p == nil {
		p = &pool{}
		w.pools[k] = p
	}
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	s := len(p.z) / k
	p.z = append(p.z, make([]float32, k)...)
	return int32(s)
}

func (w *waiting) row(p *entry) []float32 {
	return w.pools[p.k].z[int(p.slot)*p.k : (int(p.slot)+1)*p.k]
}

// AppendState implements pipeline.State: tables, then the entries in arrival order.
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
	for e := w.oldest; e >= 0; e = w.entries[e].next {
		p := &w.entries[e]
		dst = append(dst, p.id[:]...)
		dst = append(dst, bits(p.label >= 0, p.named, p.used, p.probs))
		dst = binenc.AppendVarint(dst, int64(p.model))
		if p.label >= 0 {
			dst = binenc.AppendVarint(dst, p.labelTS)
			dst = binenc.AppendUvarint(dst, uint64(p.label))
			continue
		}
		dst = binenc.AppendVarint(dst, p.ts)
		dst = binenc.AppendFixed32(dst, math.Float32bits(p.served))
		dst = binenc.AppendFixed32(dst, math.Float32bits(p.weight))
		for _, s := range p.slices {
			dst = binenc.AppendVarint(dst, int64(s))
		}
		dst = binenc.AppendUvarint(dst, uint64(p.k))
		for _, z := range w.row(p) {
			dst = binenc.AppendFixed32(dst, math.Float32bits(z))
		}
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (w *waiting) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	w.reset(w.columns)
	for range r.Count(2, 1<<20) {
		w.model(arrowio.ModelKey{Model: r.String(maxName), Version: r.String(maxName)})
	}
	for range r.Count(1, 1<<24) {
		w.value(r.String(maxName))
	}
	if c := int(r.Uvarint()); r.Err() == nil && c != w.columns {
		return errColumns(c, w.columns)
	}
	for range r.Count(18, 1<<31) {
		w.restoreEntry(&r)
		if r.Err() != nil {
			break
		}
	}
	return r.Err()
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
	p.named, p.used, p.probs = flags&2 != 0, flags&4 != 0, flags&8 != 0
	p.model = restoreIndex(r, "model", len(w.models))
	if flags&1 != 0 {
		p.labelTS, p.label = r.Varint(), int32(r.Int("label", 0, math.MaxInt32))
		if p.named && p.model < 0 {
			r.Failf("a label that names no model says that it does")
		}
		return
	}
	if p.model < 0 {
		r.Failf("a prediction without a model")
	}
	p.ts = r.Varint()
	p.served, p.weight = math.Float32frombits(r.Fixed32()), math.Float32frombits(r.Fixed32())
	for range w.columns {
		p.slices = append(p.slices, restoreIndex(r, "slice value", len(w.values)))
	}
	k := r.Count(4, 1<<24)
	if k == 0 {
		r.Failf("a prediction without scores")
	}
	if r.Err() != nil {
		return
	}
	p.k = k
	p.slot = w.slot(k)
	row := w.row(p)
	for i := range row {
		row[i] = math.Float32frombits(r.Fixed32())
	}
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

// compact forgets the names that no entry uses any more, once they are many: slice values may be without number
// over time (tenants, sessions). Indices change. It reports whether it did anything.
func (w *waiting) compact() bool {
	if len(w.models)+len(w.values) <= 1024+4*w.live*(1+w.columns) {
		return false
	}
	models, values := w.models, w.values
	w.models, w.modelIx = nil, map[arrowio.ModelKey]int32{}
	w.values, w.valueIx = nil, map[string]int32{}
	for e := w.oldest; e >= 0; e = w.entries[e].next {
		p := &w.entries[e]
		if p.model >= 0 {
			p.model = w.model(models[p.model])
		}
		for i, v := range p.slices {
			if v >= 0 {
				p.slices[i] = w.value(values[v])
			}
		}
	}
	return true
}
