package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// builder appends records of one schema to a Table.
type builder struct {
	t       *Table
	form    arrowio.ScoreForm
	text    map[string][]string
	columns []string
	err     error // where no column holds scores
	rows    int   // of the whole file where it says so; memory for its scores is taken at once
}

// scoreForm is how the first of the columns that are scores holds them.
func scoreForm(columns []string) (arrowio.ScoreForm, error) {
	for _, form := range arrowio.ScoreForms {
		if slices.Contains(columns, form.Column) {
			return form, nil
		}
	}
	return arrowio.ScoreForm{}, fmt.Errorf("no column logits, probs, logit or prob; there are: %s",
		strings.Join(columns, ", "))
}

func newBuilder(s *arrow.Schema) *builder {
	b := &builder{t: &Table{}, text: make(map[string][]string)}
	for _, f := range s.Fields() {
		b.columns = append(b.columns, f.Name)
	}
	b.form, b.err = scoreForm(b.columns)
	md := s.Metadata()
	b.t.Model, _ = md.GetValue(arrowio.MetaModel)
	b.t.Version, _ = md.GetValue(arrowio.MetaVersion)
	b.t.Probs, b.t.Source = b.form.Probs, "column "+b.form.Column
	return b
}

func (b *builder) append(rec arrow.Record) error {
	if b.err != nil {
		return b.err
	}
	for i, name := range b.columns {
		if err := b.column(name, rec.Column(i)); err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
	}
	b.t.N += int(rec.NumRows())
	return nil
}

func (b *builder) column(name string, c arrow.Array) (err error) {
	t := b.t
	switch name {
	case b.form.Column:
		return b.scores(c)
	case "label":
		return appendInts(&t.Label, c)
	case "ts":
		return appendTimes(&t.TS, c)
	case "id":
		return appendText(&t.IDs, c)
	case "served":
		return appendFloats(&t.Served, c, math.NaN())
	case "weight":
		return appendFloats(&t.Weight, c, 1)
	case "features":
		var d int
		d, err = appendLists(&t.Features, c, t.D, true)
		t.D = d
		return err
	}
	switch c.DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.DICTIONARY:
		v := b.text[name]
		err = appendText(&v, c)
		b.text[name] = v
	}
	return err
}

// scores appends the score column: in float64 where the file has that.
func (b *builder) scores(c arrow.Array) (err error) {
	t := b.t
	if b.form.Binary {
		var v []float64
		if err := appendFloats(&v, c, math.NaN()); err != nil {
			return err
		}
		t.K = 2
		for _, x := range v {
			rest := 0.0
			if t.Probs {
				rest = 1 - x
			}
			if c.DataType().ID() == arrow.FLOAT64 {
				t.Scores64 = append(t.Scores64, rest, x)
			} else {
				t.Scores32 = append(t.Scores32, float32(rest), float32(x))
			}
		}
		return nil
	}
	l, ok := c.(array.ListLike)
	if ok && l.ListValues().DataType().ID() == arrow.FLOAT64 {
		t.K, err = appendLists(&t.Scores64, c, t.K, false)
		t.Scores64 = roomFor(t.Scores64, b.rows, t.K)
	} else {
		t.K, err = appendLists(&t.Scores32, c, t.K, false)
		t.Scores32 = roomFor(t.Scores32, b.rows, t.K)
	}
	return err
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

// table ends the building: model and version columns of one value are the table's, other text is slices.
func (b *builder) table() (*Table, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.t.setText(b.text)
	return b.t, nil
}

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

func appendFloats[T float](out *[]T, c arrow.Array, null float64) error {
	at := floatAt(c)
	if at == nil {
		return fmt.Errorf("type %s, allowed are float16, float32, float64", c.DataType())
	}
	for i := range c.Len() {
		x := null
		if !c.IsNull(i) {
			x = at(i)
		}
		*out = append(*out, T(x))
	}
	return nil
}

// appendLists appends the rows of a list column, all of k values (any number where k is 0), and returns k.
// A null row becomes NaN if nullable.
func appendLists[T float](out *[]T, c arrow.Array, k int, nullable bool) (int, error) {
	l, ok := c.(array.ListLike)
	var at func(int) float64
	if ok {
		at = floatAt(l.ListValues())
	}
	if at == nil {
		return k, fmt.Errorf("type %s, allowed is a list of float16, float32, float64", c.DataType())
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
				return k, fmt.Errorf("null at row %d", i)
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
			return k, fmt.Errorf("row %d has %d values, the rows before %d", i, to-from, k)
		}
		for j := int(from); j < int(to); j++ {
			if values.IsNull(j) {
				return k, fmt.Errorf("null among the values of row %d", i)
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

func appendInts(out *[]int32, c arrow.Array) error {
	if !arrow.IsInteger(c.DataType().ID()) {
		return fmt.Errorf("type %s, allowed are integers", c.DataType())
	}
	if appendDenseInts(out, c) {
		return nil
	}
	for i := range c.Len() {
		if c.IsNull(i) {
			*out = append(*out, -1)
			continue
		}
		y, err := strconv.ParseInt(c.ValueStr(i), 10, 32)
		if err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		*out = append(*out, int32(y))
	}
	return nil
}

func appendTimes(out *[]arrowio.Time, c arrow.Array) error {
	a, ok := c.(*array.Timestamp)
	if !ok {
		return fmt.Errorf("type %s, allowed are timestamps", c.DataType())
	}
	unit := wire.Nanoseconds[c.DataType().(*arrow.TimestampType).Unit]
	for i := range c.Len() {
		t := int64(a.Value(i))
		if c.IsNull(i) || t > math.MaxInt64/unit || t < -(math.MaxInt64/unit) {
			return fmt.Errorf("row %d is null or outside the years 1677 to 2262", i)
		}
		*out = append(*out, t*unit)
	}
	return nil
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
		if c.IsNull(i) {
			s = ""
		}
		*out = append(*out, strings.Clone(s))
	}
	return nil
}
