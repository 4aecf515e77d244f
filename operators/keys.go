package operators

import (
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
)

// statsKey is one (model, version, slice). The slice's name is put together once, when the key is added, so
// that counting a row makes no string.
type statsKey struct {
	model         arrowio.ModelKey
	column, value string // "" and "" = all rows; OtherSlice and "" = pooled
	classes       int
}

// slice is the slice's name: "", "column=value" or OtherSlice.
func (k *statsKey) slice() string {
	if k.column == "" || k.column == OtherSlice {
		return k.column
	}
	return k.column + "=" + k.value
}

// keyTable numbers the keys of a shard. Past the bound, new slices are pooled as ~other of their model version;
// the keys of whole model versions always find a place: without them nothing would be counted at all.
type keyTable struct {
	max   int
	keys  []statsKey
	names []string // slice() of keys
	ix    map[statsKey]int32
}

func newKeyTable(limit int) keyTable { return keyTable{max: limit, ix: map[statsKey]int32{}} }

func (t *keyTable) index(m arrowio.ModelKey, column, value string, classes int) (key int32, pooled bool) {
	k := statsKey{m, column, value, classes}
	if i, ok := t.ix[k]; ok {
		return i, false
	}
	if column != "" && column != OtherSlice && t.max > 0 && len(t.keys) >= t.max {
		i, _ := t.index(m, OtherSlice, "", classes)
		return i, true
	}
	k.column, k.value = strings.Clone(column), strings.Clone(value) // they may share a message's memory
	return t.add(k), false
}

func (t *keyTable) add(k statsKey) int32 {
	i := int32(len(t.keys))
	t.keys, t.names = append(t.keys, k), append(t.names, k.slice())
	t.ix[k] = i
	return i
}

func (t *keyTable) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(t.keys)))
	for _, k := range t.keys {
		dst = binenc.AppendString(dst, k.model.Model)
		dst = binenc.AppendString(dst, k.model.Version)
		dst = binenc.AppendString(dst, k.column)
		dst = binenc.AppendString(dst, k.value)
		dst = binenc.AppendUvarint(dst, uint64(k.classes))
	}
	return dst
}

func (t *keyTable) restore(r *binenc.Reader) {
	t.keys, t.names, t.ix = nil, nil, map[statsKey]int32{}
	for range r.Count(5, 1<<24) {
		k := statsKey{model: arrowio.ModelKey{Model: r.String(maxName), Version: r.String(maxName)}, column: r.String(maxName), value: r.String(maxName)}
		k.classes = int(r.Uvarint())
		if r.Err() != nil {
			return
		}
		t.add(k)
	}
}
