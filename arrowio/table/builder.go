package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// builder appends records of one schema to a Table.
type builder struct {
	*filler
	at     []place // of each field
	double bool    // scores in float64
	rows   int     // of the whole file where it says so; memory for its scores is taken at once
}

// place is where a field lies in a record.
type place struct {
	column int // -1 where it has none
	child  int // of a struct; -1 is the column itself
}

// flat are fields with those of structs in the place of these, named as in JSON: probs.cat, probs.dog.
func flat(fields []arrow.Field) (out []arrow.Field, at []place) {
	for i, f := range fields {
		s, ok := f.Type.(*arrow.StructType)
		if !ok || s.NumFields() == 0 {
			out, at = append(out, f), append(at, place{i, -1})
			continue
		}
		for j, child := range s.Fields() {
			child.Name = f.Name + "." + child.Name
			out, at = append(out, child), append(at, place{i, j})
		}
	}
	return out, at
}

// arrayAt is the column of a field; a row that is null as a struct is so in each of its fields.
func arrayAt(rec arrow.Record, at place) arrow.Array {
	c := rec.Column(at.column)
	s, ok := c.(*array.Struct)
	if !ok || at.child < 0 {
		return c
	}
	f := s.Field(at.child)
	d := f.Data()
	if s.NullN() == 0 || len(d.Buffers()) == 0 || d.DataType().ID() == arrow.NULL {
		return f
	}
	valid, nulls := record.Bitmap(d.Offset()+f.Len(), func(i int) bool {
		i -= d.Offset()
		return i >= 0 && (s.IsNull(i) || f.IsNull(i))
	})
	buffers := slices.Clone(d.Buffers())
	buffers[0] = memory.NewBufferBytes(valid)
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		return array.MakeFromData(array.NewDataWithDictionary(d.DataType(), f.Len(), buffers, nulls, d.Offset(), dict))
	}
	return array.MakeFromData(array.NewData(d.DataType(), f.Len(), buffers, d.Children(), nulls, d.Offset()))
}

// newBuilder plans the columns of a schema.
func newBuilder(fields []arrow.Field, o Options) (*builder, error) {
	fields, at := flat(fields)
	var known []field
	for _, f := range fields {
		known = append(known, field{name: f.Name, kind: kindOf(f.Type)})
	}
	p, err := planOf(known, o)
	if err != nil {
		return nil, err
	}
	b := &builder{filler: newFiller(p), at: at}
	for i, f := range fields {
		r, t := p.roles[i], f.Type
		if l, ok := t.(arrow.ListLikeType); ok {
			t = l.Elem()
		}
		single := t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT16
		b.double = b.double || (r.part == scoreList || r.part == scoreColumn) && !single
	}
	return b, nil
}

func kindOf(t arrow.DataType) kind {
	switch id := t.ID(); {
	case arrow.IsFloating(id), arrow.IsDecimal(id):
		return floats
	case arrow.IsInteger(id):
		return ints
	case id == arrow.NULL:
		return nulls
	case id == arrow.BOOL:
		return bools
	case id == arrow.STRING, id == arrow.LARGE_STRING, id == arrow.STRING_VIEW:
		return texts
	case id == arrow.DICTIONARY:
		return kindOf(t.(*arrow.DictionaryType).ValueType)
	case id == arrow.TIMESTAMP, id == arrow.DATE32, id == arrow.DATE64:
		return times
	}
	if l, ok := t.(arrow.ListLikeType); ok && kindOf(l.Elem()).numeric() {
		return lists
	}
	return other
}

func (b *builder) append(rec arrow.Record) error {
	n := int(rec.NumRows())
	if b.p.k > 0 {
		if b.double {
			b.t.Scores64 = roomFor(grow(b.t.Scores64, n*b.p.k), b.rows, b.p.k)
		} else {
			b.t.Scores32 = roomFor(grow(b.t.Scores32, n*b.p.k), b.rows, b.p.k)
		}
	}
	b.t.Features = grow(b.t.Features, n*b.p.d)
	b.hot = slices.Grow(b.hot[:0], n*len(b.p.labels))[:n*len(b.p.labels)]
	for i, at := range b.at {
		if at.column < 0 || b.p.roles[i].part == ignored {
			continue
		}
		if err := b.column(i, arrayAt(rec, at)); err != nil {
			return fmt.Errorf("column %s: %w", quoteName(b.p.fields[i].name), err)
		}
	}
	if k := len(b.p.labels); k > 1 {
		for i := range n {
			if err := b.hotRow(b.hot[i*k : (i+1)*k]); err != nil {
				return err
			}
		}
	}
	b.t.N += n
	return nil
}

// grow makes v longer by n zeros.
func grow[T float](v []T, n int) []T {
	if n == 0 {
		return v
	}
	return append(v, make([]T, n)...)
}

func (b *builder) column(i int, c arrow.Array) (err error) {
	t, r := b.t, b.p.roles[i]
	switch r.part {
	case scoreList:
		return b.scoreLists(c)
	case scoreColumn:
		if b.double {
			return strided(t.Scores64[t.N*b.p.k:], b.p.k, r.at, c)
		}
		return strided(t.Scores32[t.N*b.p.k:], b.p.k, r.at, c)
	case labelColumn:
		return b.labelValues(c)
	case labelList:
		return b.labelLists(c)
	case labelHot:
		return strided(b.hot, len(b.p.labels), r.at, c)
	case timeColumn:
		return b.timeError("", b.timeValues(c))
	case idColumn:
		return appendText(&t.IDs, c)
	case servedColumn:
		return appendFloats(&t.Served, c, math.NaN())
	case weightColumn:
		return appendFloats(&t.Weight, c, 1)
	case featureList:
		t.D, err = appendLists(&t.Features, c, t.D, t.N, true)
		return err
	case featureColumn:
		return strided(t.Features[t.N*b.p.d:], b.p.d, r.at, c)
	}
	return appendText(b.text[b.p.fields[i].name], c)
}

// scoreLists appends the score column: in float64 where the file has that.
func (b *builder) scoreLists(c arrow.Array) (err error) {
	t := b.t
	if b.double {
		t.K, err = appendLists(&t.Scores64, c, t.K, t.N, false)
		t.Scores64 = roomFor(t.Scores64, b.rows, t.K)
	} else {
		t.K, err = appendLists(&t.Scores32, c, t.K, t.N, false)
		t.Scores32 = roomFor(t.Scores32, b.rows, t.K)
	}
	return err
}

// strided writes a column of numbers, NaN where null, as one of k.
func strided[T float](out []T, k, at int, c arrow.Array) error {
	value := numberAt(c)
	if value == nil {
		return fmt.Errorf("type %s, allowed are numbers", c.DataType())
	}
	for i := range c.Len() {
		x := math.NaN()
		if !c.IsNull(i) {
			x = value(i)
		}
		out[i*k+at] = T(x)
	}
	return nil
}

func (b *builder) labelValues(c arrow.Array) error {
	switch kindOf(c.DataType()) {
	case ints:
		if c.DataType().ID() != arrow.DICTIONARY {
			return b.labelInts(c)
		}
	case bools:
		if value := numberAt(c); value != nil {
			return b.labelTruths(c, value)
		}
	case floats, nulls:
		if value := numberAt(c); value != nil {
			return b.labelNumbers(c, value)
		}
	case texts:
	default:
		return fmt.Errorf("type %s, allowed are integers, whole floats, booleans, text and lists", c.DataType())
	}
	var s []string
	if err := appendText(&s, c); err != nil {
		return err
	}
	for _, v := range s {
		if err := b.y.text(strings.TrimSpace(v)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) labelTruths(c arrow.Array, value func(int) float64) error {
	for i := range c.Len() {
		if c.IsNull(i) {
			b.y.none()
		} else {
			b.y.truth(value(i) != 0)
		}
	}
	return nil
}

func (b *builder) labelNumbers(c arrow.Array, value func(int) float64) error {
	for i := range c.Len() {
		if c.IsNull(i) {
			b.y.none()
		} else if err := b.y.fraction(value(i)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) labelInts(c arrow.Array) error {
	if appendDenseInts(&b.y.class, c) {
		return nil
	}
	value := intAt(c)
	for i := range c.Len() {
		if c.IsNull(i) {
			b.y.none()
		} else if err := b.y.whole(value(i)); err != nil {
			return err
		}
	}
	return nil
}

// labelLists are labels one of whose K values is 1, or lists of the label alone.
func (b *builder) labelLists(c arrow.Array) error {
	var rows []float64
	k, err := appendLists(&rows, c, 0, b.t.N, true)
	for i := 0; err == nil && i < c.Len(); i++ {
		switch {
		case c.IsNull(i): // where all are, k is 0
			b.y.none()
		case k == 1:
			err = b.y.fraction(rows[i])
		default:
			err = b.y.hot(rows[i*k : (i+1)*k])
		}
	}
	return err
}

func (b *builder) timeValues(c arrow.Array) error {
	if b.noTime != nil {
		return nil
	}
	switch c := c.(type) {
	case *array.Timestamp:
		return appendTimes(&b.when.ns, c, b.t.N)
	case *array.Date32, *array.Date64:
		return b.dates(c)
	}
	if k := kindOf(c.DataType()); k == ints && c.DataType().ID() != arrow.DICTIONARY {
		value := intAt(c)
		return b.eachTime(c, func(i int) error { return b.when.number(value(i)) })
	} else if value := numberAt(c); k == floats && value != nil {
		return b.eachTime(c, func(i int) error { return b.when.fraction(value(i)) })
	} else if k != texts {
		return fmt.Errorf("type %s, allowed are timestamps, dates, numbers and text", c.DataType())
	}
	var s []string
	if err := appendText(&s, c); err != nil {
		return err
	}
	return b.eachTime(c, func(i int) error { return b.when.text(strings.TrimSpace(s[i])) })
}

func (b *builder) eachTime(c arrow.Array, f func(i int) error) error {
	for i := range c.Len() {
		if isNull(c, i) {
			return fmt.Errorf("row %d is null", b.t.N+i)
		}
		if err := f(i); err != nil {
			return fmt.Errorf("row %d: %w", b.t.N+i, err)
		}
	}
	return nil
}

func (b *builder) dates(c arrow.Array) error {
	return b.eachTime(c, func(i int) error {
		var at time.Time
		switch c := c.(type) {
		case *array.Date32:
			at = c.Value(i).ToTime()
		case *array.Date64:
			at = c.Value(i).ToTime()
		}
		return b.when.date(at, at.Format(time.DateOnly))
	})
}

// roomFor makes room for rows of k in all, once the first rows have shown k. rows is the file's claim: it is believed
// up to a bound.
func roomFor[T float](v []T, rows, k int) []T {
	const most = 1 << 28
	if want := rows * k; want > cap(v) && rows <= most && want <= most {
		return slices.Grow(v, want-len(v))
	}
	return v
}

// setText sets model and version from columns of one value; other text is slices.
func (t *Table) setText(text map[string][]string) {
	for name, to := range map[string]*string{"model": &t.Model, "version": &t.Version} {
		if v := text[name]; len(v) > 0 && len(slices.Compact(slices.Clone(v))) == 1 {
			*to = v[0]
			delete(text, name)
		}
	}
	if len(text) > 0 {
		t.Slices = text
	}
}

func sortedKeys(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }

type float interface{ ~float32 | ~float64 }

// floatAt is a reader of a float array, or nil for other types.
func floatAt(c arrow.Array) func(int) float64 {
	switch c := c.(type) {
	case *array.Float16:
		return func(i int) float64 { return float64(half.Value(c.Value(i).Uint16())) }
	case *array.Float32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Float64:
		return func(i int) float64 { return c.Value(i) }
	}
	return nil
}

// numberAt reads floats, integers, booleans and decimals; nil for other types.
func numberAt(c arrow.Array) func(int) float64 {
	switch a := c.(type) {
	case *array.Null:
		return func(int) float64 { return math.NaN() }
	case *array.Boolean:
		return func(i int) float64 {
			if a.Value(i) {
				return 1
			}
			return 0
		}
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) float64 { return a.Value(i).ToFloat64(scale) }
	}
	if value := intAt(c); value != nil {
		return func(i int) float64 { return float64(value(i)) }
	}
	return floatAt(c)
}

// intAt reads integers; nil for other types. A uint64 above the int64 range becomes the greatest int64.
func intAt(c arrow.Array) func(int) int64 {
	switch a := c.(type) {
	case *array.Int8:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint8:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int16:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint16:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int64:
		return func(i int) int64 { return a.Value(i) }
	case *array.Uint64:
		return func(i int) int64 { return int64(min(a.Value(i), math.MaxInt64)) }
	}
	return nil
}

func appendFloats[T float](out *[]T, c arrow.Array, null float64) error {
	at := numberAt(c)
	if at == nil {
		return fmt.Errorf("type %s, allowed are numbers", c.DataType())
	}
	for i := range c.Len() {
		x := null
		if !isNull(c, i) {
			x = at(i)
		}
		*out = append(*out, T(x))
	}
	return nil
}

// appendLists appends the rows of a list column, all of k values (any number where k is 0), and returns k.
// A null row becomes NaN if nullable. Errors count rows from first, that of the column's first value.
func appendLists[T float](out *[]T, c arrow.Array, k, first int, nullable bool) (int, error) {
	l, ok := c.(array.ListLike)
	var at func(int) float64
	if ok {
		at = numberAt(l.ListValues())
	}
	if at == nil {
		return k, fmt.Errorf("type %s, allowed is a list of numbers", c.DataType())
	}
	if k == 0 {
		k = listLength(l)
	}
	if appendDense(out, c, l, k) {
		return k, nil
	}
	values := l.ListValues()
	for i := range c.Len() {
		if c.IsNull(i) {
			if !nullable {
				return k, fmt.Errorf("null at row %d", first+i)
			}
			for range k {
				*out = append(*out, T(math.NaN()))
			}
			continue
		}
		from, to := l.ValueOffsets(i)
		if k == 0 {
			k = int(to - from)
		}
		if int(to-from) != k {
			return k, fmt.Errorf("row %d has %d values, the rows before %d", first+i, to-from, k)
		}
		for j := int(from); j < int(to); j++ {
			if values.IsNull(j) {
				return k, fmt.Errorf("null among the values of row %d", first+i)
			}
			*out = append(*out, T(at(j)))
		}
	}
	return k, nil
}

// listLength is how many values the first row has that is not null; 0 where there is none.
func listLength(l array.ListLike) int {
	if f, ok := l.DataType().(*arrow.FixedSizeListType); ok {
		return int(f.Len())
	}
	for i := range l.Len() {
		if !l.IsNull(i) {
			from, to := l.ValueOffsets(i)
			return int(to - from)
		}
	}
	return 0
}

// appendInts appends integers, -1 where null. Errors count rows from first.
func appendInts(out *[]int32, c arrow.Array, first int) error {
	value := intAt(c)
	if value == nil {
		return fmt.Errorf("type %s, allowed are integers", c.DataType())
	}
	if appendDenseInts(out, c) {
		return nil
	}
	for i := range c.Len() {
		y := int64(-1)
		if !c.IsNull(i) {
			y = value(i)
		}
		if y < math.MinInt32 || y > math.MaxInt32 {
			return fmt.Errorf("row %d: %d is outside 32 bits", first+i, y)
		}
		*out = append(*out, int32(y))
	}
	return nil
}

// appendTimes appends timestamps. Errors count rows from first.
func appendTimes(out *[]arrowio.Time, c arrow.Array, first int) error {
	a, ok := c.(*array.Timestamp)
	if !ok {
		return fmt.Errorf("type %s, allowed are timestamps", c.DataType())
	}
	unit := wire.Nanoseconds[c.DataType().(*arrow.TimestampType).Unit]
	for i := range c.Len() {
		t := int64(a.Value(i))
		if c.IsNull(i) || t > math.MaxInt64/unit || t < -(math.MaxInt64/unit) || t == math.MaxInt64 {
			return fmt.Errorf("row %d is null or outside the years 1677 to 2262", first+i)
		}
		*out = append(*out, t*unit)
	}
	return nil
}

// isNull reports whether a row is null: the row, or the entry of the dictionary that it stands for, which the library
// writes as the text "(null)". The library says of no row of type null that it is.
func isNull(c arrow.Array, i int) bool {
	d, ok := c.(*array.Dictionary)
	return c.IsNull(i) || c.DataType().ID() == arrow.NULL || ok && d.Dictionary().IsNull(d.GetValueIndex(i))
}

// appendText appends any column as text; "" where null. Binary values stay bytes.
func appendText(out *[]string, c arrow.Array) error {
	for i := range c.Len() {
		s := ""
		switch a := c.(type) {
		case *array.Binary:
			s = string(a.Value(i))
		case *array.LargeBinary:
			s = string(a.Value(i))
		default:
			s = c.ValueStr(i)
		}
		if isNull(c, i) {
			s = ""
		}
		*out = append(*out, strings.Clone(s))
	}
	return nil
}
