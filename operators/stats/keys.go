package stats

import (
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/slicing"
)

// sliceKey is one (model, version, slice). The slice's name is built once, when the key is added, so that counting a
// row allocates no string.
type sliceKey struct {
	model         arrowio.ModelKey
	column, value string // "" and "" = all rows; value slicing.Other = the pooled ones of the column
	classes       int
}

// slice is the slice's name: "" or "column=value".
func (k *sliceKey) slice() string {
	if k.column == "" {
		return ""
	}
	return k.column + "=" + k.value
}

// columnKey is a slice column of one model version.
type columnKey struct {
	model   arrowio.ModelKey
	column  string
	classes int
}

// sliceColumn is a shard's state of a column: how many values have keys, and the values in the open label panes.
type sliceColumn struct {
	columnKey
	n     int
	panes map[int64]*paneValues // made where there are more than slots keys
}

// keyTable numbers the keys of a shard. Whole model versions and ~other always get a key: without them nothing would
// be counted. Other values get one as long as a label pane has slots for them (admit.go).
type keyTable struct {
	slots   int // 0 = no bound
	keys    []sliceKey
	names   []string       // slice() of keys
	turns   []uint32       // of keys (slicing.Turns)
	columns []*sliceColumn // of keys; nil for whole model versions and ~other
	ix      map[sliceKey]int32
	recent  [places]int32 // by placeOf a value, the key that was asked for last
	byName  map[columnKey]*sliceColumn
	bytes   int // about what they take
}

const places = 1 << 10

// placeOf hashes the last letters of a value, which differ for most values of a column.
func placeOf(value string) uint {
	h := uint(len(value))
	for i := max(0, len(value)-4); i < len(value); i++ {
		h = 11*h + uint(value[i])
	}
	return h % places
}

func newKeyTable(limit int) keyTable {
	return keyTable{slots: slicing.Slots(limit), ix: map[sliceKey]int32{}, byName: map[columnKey]*sliceColumn{}}
}

// index returns the number of a key, adding it if there is room. If its column has more values than slots, full is the
// column, and the number is -1 for a value without a key.
func (t *keyTable) index(m arrowio.ModelKey, column, value string, classes int) (key int32, full *sliceColumn) {
	k := sliceKey{m, column, value, classes}
	recent := &t.recent[placeOf(value)]
	i, ok := *recent, true
	if int(i) >= len(t.keys) || t.keys[i] != k {
		i, ok = t.ix[k]
	}
	if ok {
		*recent = i
		if c := t.columns[i]; c != nil && t.slots > 0 && c.n > t.slots {
			return i, c
		}
		return i, nil
	}
	if pools(column, value) {
		return t.add(k), nil
	}
	if c := t.byName[columnKey{m, column, classes}]; c != nil && t.slots > 0 && c.n >= t.slots {
		return -1, c
	}
	return t.add(k), nil
}

// pools reports whether a key is for more than one value: a whole model version, or ~other.
func pools(column, value string) bool {
	return column == "" || value == slicing.Other
}

// add adds a new key. Its text is copied, because it may share a message's memory.
func (t *keyTable) add(k sliceKey) int32 {
	k.column, k.value = strings.Clone(k.column), strings.Clone(k.value)
	i := int32(len(t.keys))
	var c *sliceColumn
	if !pools(k.column, k.value) {
		name := columnKey{k.model, k.column, k.classes}
		if c = t.byName[name]; c == nil {
			c = &sliceColumn{columnKey: name, panes: map[int64]*paneValues{}}
			t.byName[name] = c
		}
		c.n++
	}
	t.keys, t.names, t.columns = append(t.keys, k), append(t.names, k.slice()), append(t.columns, c)
	t.turns = append(t.turns, slicing.TurnOf(t.names[i]))
	t.ix[k] = i
	t.bytes += keyBytes + len(k.value) + len(t.names[i])
	return i
}

// other returns the key of a column's pooled values.
func (t *keyTable) other(c *sliceColumn) int32 {
	i, _ := t.index(c.model, c.column, slicing.Other, c.classes)
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
	t.clear()
	for range r.Count(5, 1<<24) {
		k := sliceKey{model: arrowio.ModelKey{Model: r.String(binenc.MaxName), Version: r.String(binenc.MaxName)},
			column: r.String(binenc.MaxName), value: r.String(binenc.MaxName)}
		k.classes = int(r.Uvarint())
		if r.Err() != nil {
			return
		}
		t.add(k)
	}
}

func (t *keyTable) clear() {
	t.keys, t.names, t.turns, t.columns = nil, nil, nil, nil
	t.ix, t.byName, t.bytes = map[sliceKey]int32{}, map[columnKey]*sliceColumn{}, 0
}
