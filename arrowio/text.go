package arrowio

import (
	"slices"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// text is a column of strings by index into its distinct values; index < 0 where null.
type text struct {
	values []string
	index  []int32
}

// at is the value of row i and whether it is not null.
func (t text) at(i int) (string, bool) {
	if t.index[i] < 0 {
		return "", false
	}
	return t.values[t.index[i]], true
}

// withoutEmpty makes empty values null, as they are in files and in every other format.
func (t text) withoutEmpty() {
	if !slices.Contains(t.values, "") {
		return
	}
	for i := range t.index { // a dictionary may have it twice
		if s, ok := t.at(i); ok && s == "" {
			t.index[i] = -1
		}
	}
}

// dictionary is the values of a dictionary so far; null says which entries are null.
type dictionary struct {
	values []string
	null   []bool
}

// readDictionary reads a dictionary batch. Ones that no used column refers to are skipped.
func (r *reader) readDictionary(m wire.Message) error {
	id, delta, c, err := r.plan.schema.Dictionary(m, r.plan.want, r.d.opt.MaxRows, r.d.inflater)
	if err != nil || c == nil {
		return err
	}
	var dict dictionary
	if delta {
		old, ok := r.dicts[id]
		if !ok {
			return wire.Errorf(wire.Dictionary, "dictionary %d: an addition before the dictionary", id)
		}
		dict = old
	}
	if len(dict.values)+c.N > r.d.opt.MaxRows {
		return wire.Errorf(wire.Dictionary, "dictionary %d of %d entries, at most %d", id, len(dict.values)+c.N,
			r.d.opt.MaxRows)
	}
	off, reuse, err := wire.Offsets(c, len(c.Text), r.d.offsets)
	r.d.offsets = reuse
	if err != nil {
		return err
	}
	// Appending leaves the values that earlier batches of the message view as they are.
	values, null := dict.values, dict.null
	for i := range c.N {
		s, err := r.checkText(c, c.Text[off[i]:off[i+1]])
		if err != nil {
			return err
		}
		values, null = append(values, string(s)), append(null, c.IsNull(i))
	}
	if r.dicts == nil {
		r.dicts = make(map[int64]dictionary)
	}
	r.dicts[id] = dictionary{values: values, null: null}
	return nil
}

// checkText refuses text that may not become a key or a metric label.
func (r *reader) checkText(c *wire.Column, s []byte) ([]byte, error) {
	if len(s) > r.d.opt.MaxText {
		return nil, wire.Errorf(wire.TooLarge, "column %q: text of %d bytes, at most %d", c.Field.Name, len(s),
			r.d.opt.MaxText)
	}
	if !utf8.Valid(s) {
		return nil, wire.Errorf(wire.BadText, "column %q: %.32q is not UTF-8", c.Field.Name, s)
	}
	return s, nil
}

// readText reads a column of strings. The strings are copied, since keys outlive the message.
func (r *reader) readText(c *wire.Column) (text, error) {
	if c.Field.Dict != nil {
		return r.dictText(c)
	}
	t := text{index: make([]int32, c.N)}
	off, reuse, err := wire.Offsets(c, len(c.Text), r.d.offsets)
	r.d.offsets = reuse
	if err != nil {
		return t, err
	}
	seen := make(map[string]int32)
	last := int32(-1)
	for i := range t.index {
		if c.IsNull(i) {
			t.index[i] = -1
			continue
		}
		s := c.Text[off[i]:off[i+1]]
		if last >= 0 && t.values[last] == string(s) { // runs are the usual case
			t.index[i] = last
			continue
		}
		j, ok := seen[string(s)]
		if !ok {
			if s, err = r.checkText(c, s); err != nil {
				return t, err
			}
			j = int32(len(t.values))
			t.values = append(t.values, string(s))
			seen[t.values[j]] = j
		}
		t.index[i], last = j, j
	}
	return t, nil
}

func (r *reader) dictText(c *wire.Column) (text, error) {
	d, ok := r.dicts[c.Field.Dict.ID]
	if !ok {
		return text{}, wire.Errorf(wire.Dictionary, "column %q: no dictionary %d before the record batch", c.Field.Name,
			c.Field.Dict.ID)
	}
	t := text{values: d.values, index: make([]int32, c.N)}
	var err error
	switch c.Field.Dict.Bits {
	case 8:
		err = indices[uint8](t, d, c)
	case 16:
		err = indices[uint16](t, d, c)
	case 32:
		err = indices[uint32](t, d, c)
	default:
		err = indices[uint64](t, d, c)
	}
	return t, err
}

// indices reads dictionary indices as unsigned: a negative one then lies at or above the limit.
func indices[T wire.Number](t text, d dictionary, c *wire.Column) error {
	v, err := wire.Values[T](c.Field.Name, c.Data, c.N)
	if err != nil {
		return err
	}
	limit := uint64(len(d.values))
	if c.Field.Dict.Signed {
		limit = min(limit, 1<<(c.Field.Dict.Bits-1))
	}
	for i, x := range v {
		if c.IsNull(i) {
			t.index[i] = -1
			continue
		}
		if uint64(x) >= limit {
			return wire.Errorf(wire.Dictionary, "column %q: index %v at row %d in a dictionary of %d", c.Field.Name, x,
				i, len(d.values))
		}
		t.index[i] = int32(x)
		if d.null[t.index[i]] {
			t.index[i] = -1
		}
	}
	return nil
}

// slices reads the configured slice columns that the message has.
func (r *reader) slices(b *Batch, cols []*wire.Column) error {
	for i, f := range r.plan.slices {
		if f < 0 {
			continue
		}
		t, err := r.readText(cols[f])
		if err != nil {
			return err
		}
		t.withoutEmpty()
		b.Slices = append(b.Slices, SliceColumn{Name: r.d.opt.Slices[i], Values: t.values, Index: t.index})
	}
	return nil
}

// rowKeys are the model and version of each row: of its columns, else of the schema's metadata.
type rowKeys struct {
	meta           ModelKey
	model, version text // without an index where there is no column
}

func (k *rowKeys) at(i int) ModelKey {
	key := k.meta
	if k.model.index != nil {
		key.Model, _ = k.model.at(i)
	}
	if k.version.index != nil {
		if s, ok := k.version.at(i); ok && s != "" {
			key.Version = s
		}
	}
	return key
}

// readRowKeys reads the columns that there are.
func (r *reader) readRowKeys(model, version *wire.Column) (k rowKeys, err error) {
	k.meta = ModelKey{r.plan.metaModel, r.plan.metaVersion}
	if k.meta.Version == "" && r.kind == Predictions {
		k.meta.Version = DefaultVersion
	}
	if model != nil {
		if k.model, err = r.readText(model); err != nil {
			return k, err
		}
	}
	if version != nil {
		k.version, err = r.readText(version)
	}
	return k, err
}

// models says of every row which model and version it is of.
func (r *reader) models(b *Batch, model, version *wire.Column) error {
	keys, err := r.readRowKeys(model, version)
	if err != nil {
		return err
	}
	if model == nil && version == nil {
		b.Models = []ModelKey{keys.meta}
		return nil
	}
	b.Model = wire.Take(&b.mem.model, b.N)
	seen := make(map[ModelKey]int32, 1)
	var last ModelKey
	for i := range b.Model {
		key := keys.at(i)
		if key.Model == "" && r.kind == Predictions {
			b.rejectNull(i, "model")
		}
		if i > 0 && key == last {
			b.Model[i] = b.Model[i-1]
			continue
		}
		j, ok := seen[key]
		if !ok {
			j = int32(len(b.Models))
			b.Models = append(b.Models, key)
			seen[key] = j
		}
		b.Model[i], last = j, key
	}
	if len(b.Models) == 1 {
		b.Model = nil
	}
	return nil
}
