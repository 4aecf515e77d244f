package inputs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// kind is how the values of a column are read.
type kind uint8

const (
	text kind = iota
	ident
	instant
	class
	number
	vector
)

// column collects the values of one column over the rows of a record: it makes of what a decoder reads, whatever its
// type there, a value of its kind.
type column struct {
	cells
	part     int // of a vector by several paths: which; -1 = whole
	classes  []string
	numbered map[int64]int64 // as of numbered(classes)
}

// whole reports whether a value of a column is a list.
func (c *column) whole() bool { return c.kind == vector && c.part < 0 }

func (c *column) fail(row int, format string, args ...any) error {
	return wire.Errorf(wire.ColumnType, "row %d, %s (column %s): %s", row, c.path, c.name, fmt.Sprintf(format, args...))
}

// addNull adds a row whose value is null. Only of times it is another thing than no value: the row is rejected.
func (c *column) addNull() error {
	if c.role != roleTS {
		return c.addAbsent()
	}
	if err := c.room(16); err != nil {
		return err
	}
	c.ints, c.null = append(c.ints, 0), append(c.null, true)
	c.some = true
	c.n++
	return nil
}

// addAbsent adds a row whose record has no such field. It is null, but for a time: that is the record's. A column
// without a value takes no memory.
func (c *column) addAbsent() error {
	c.n++
	if !c.some {
		return nil
	}
	return c.room(0)
}

// timeLayouts are RFC 3339, and what pandas, Python, Java and databases write for it. Without a zone it is UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07"}

// isNumber reports whether text is a number as JSON writes one.
func isNumber(s []byte) bool {
	check := scanner{b: s}
	n, err := check.number()
	return err == nil && len(n) == len(s)
}

// addText adds text.
func (c *column) addText(s []byte) error {
	if err := c.room(len(s) + 16); err != nil {
		return err
	}
	if !utf8.Valid(s) {
		return wire.Errorf(wire.BadText, "row %d, %s (column %s): %.32q is not UTF-8", c.n, c.path, c.name, s)
	}
	switch c.kind {
	case text, ident:
		return c.addName(s)
	case instant:
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, string(s)); err == nil {
				return c.addTime(t)
			}
		}
		if isNumber(s) {
			return c.addNumber(s)
		}
		return c.fail(c.n, "%.40q must be a time as in RFC 3339, such as 2024-03-01T12:00:00Z", s)
	case class:
		return c.addClass(s)
	}
	if isNumber(s) && !c.whole() {
		return c.addNumber(s)
	}
	return c.fail(c.n, "%.40q is text, must be %s", s, c.wants())
}

// addName adds a text or an id; an empty one is none.
func (c *column) addName(s []byte) error {
	if len(s) == 0 {
		return c.addNull()
	}
	if c.kind == ident {
		if c.numbers == 1 {
			return c.fail(c.n, "%.40q is text, and the ids before it are numbers; \"7\" and 7 are different ids", s)
		}
		c.numbers = 2
		c.ints = append(c.ints, 0)
	}
	c.words.Data = append(c.words.Data, s...)
	c.words.Ends = append(c.words.Ends, int32(len(c.words.Data)))
	return c.added()
}

// numbered are the places of classes all of whose names are whole numbers; nil where one is not.
func numbered(classes []string) map[int64]int64 {
	of := map[int64]int64{}
	for i, name := range classes {
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			return nil
		}
		of[n] = int64(i)
	}
	if len(of) == 0 {
		return nil
	}
	return of
}

// addClassNumber adds a class by its number, or, where the names of all classes are numbers, by its name. -1 is no
// class, and rejects its row.
func (c *column) addClassNumber(n int64) error {
	i, ok := c.numbered[n]
	switch {
	case c.numbered == nil || !ok && n == -1:
		return c.addInstant(n)
	case !ok:
		return c.fail(c.n, "%d must be one of classes: %.80s", n, strings.Join(c.classes, ", "))
	}
	return c.addInstant(i)
}

// addClass adds a class by its name, or by its number as text. An empty one is none yet.
func (c *column) addClass(s []byte) error {
	if len(s) == 0 {
		return c.addNull()
	}
	if i := slices.Index(c.classes, string(s)); i >= 0 {
		return c.addInstant(int64(i))
	}
	if c.classes != nil {
		return c.fail(c.n, "%.40q must be one of classes: %.80s", s, strings.Join(c.classes, ", "))
	}
	if truth := strings.ToLower(string(s)); truth == "true" || truth == "false" {
		return c.addBool(truth == "true")
	}
	if isNumber(s) {
		return c.addNumber(s)
	}
	return c.fail(c.n, "%.40q is text; send a class's number, or name them in their order with classes of inputs", s)
}

func (c *column) wants() string {
	if c.whole() {
		return "a list of numbers"
	}
	return "a number"
}

// wantsAny describes the allowed values.
func (c *column) wantsAny() string {
	switch c.kind {
	case text, ident:
		return "text or a number"
	case instant:
		return "a time"
	case class:
		return "a class"
	}
	return c.wants()
}

func (c *column) addTime(t time.Time) error {
	if y := t.Year(); y < 1678 || y > 2261 {
		return c.addInstant(math.MaxInt64) // the row is rejected, as of a number
	}
	return c.addInstant(t.UnixNano())
}

// addEpoch adds a time since 1970, ns in nanoseconds, unless the number x is a date.
func (c *column) addEpoch(x float64, ns arrowio.Time) error {
	if date := arrowio.SpelledDate(x); date != "" {
		return c.fail(c.n, "%.0f is no time since 1970 but the date %s: send text as in RFC 3339, such as "+
			"2024-03-01T12:00:00Z, or a number since 1970", x, date)
	}
	return c.addInstant(ns)
}

// addBool adds true or false.
func (c *column) addBool(v bool) error {
	switch c.kind {
	case class:
		for i, name := range c.classes {
			if strings.EqualFold(name, strconv.FormatBool(v)) {
				return c.addInstant(int64(i))
			}
		}
		if v {
			return c.addInt(1)
		}
		return c.addInt(0)
	case text:
		return c.addText(strconv.AppendBool(nil, v))
	}
	return c.fail(c.n, "%t must be %s", v, c.wants())
}

// addNumber adds a number as it is written in JSON.
func (c *column) addNumber(raw []byte) error {
	switch c.kind {
	case number, vector:
		return c.addFloat(parseFloat32(raw))
	case text:
		return c.addText(raw)
	case instant:
		if ns, _, ok := arrowio.EpochText(string(raw)); ok {
			x, _ := strconv.ParseFloat(string(raw), 64)
			return c.addEpoch(x, ns)
		}
		return c.fail(c.n, "%.40s must be a time since 1970 in s, ms, µs or ns", raw)
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return c.addInt(n)
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil && c.kind == ident {
		return c.addInt(int64(n))
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && c.kind == class && f == math.Trunc(f) &&
		math.Abs(f) < 1<<53 {
		return c.addInt(int64(f))
	}
	return c.fail(c.n, "%.40s must be a whole number of 64 bits", raw)
}

// addInt adds a whole number, as Avro and Protobuf know them.
func (c *column) addInt(n int64) error {
	switch c.kind {
	case number, vector:
		return c.addFloat(float32(n))
	case text:
		return c.addText(strconv.AppendInt(nil, n, 10))
	case instant:
		return c.addEpoch(float64(n), arrowio.Epoch(n))
	case class:
		return c.addClassNumber(n)
	case ident:
		if c.numbers == 2 {
			return c.fail(c.n, "%d is a number, and the ids before it are text; \"7\" and 7 are different ids", n)
		}
		c.numbers = 1
		if err := c.room(16); err != nil {
			return err
		}
		c.words.Ends = append(c.words.Ends, int32(len(c.words.Data)))
	}
	c.ints = append(c.ints, n)
	return c.added()
}

// addInstant adds nanoseconds, or a class.
func (c *column) addInstant(ns int64) error {
	if err := c.room(16); err != nil {
		return err
	}
	c.ints = append(c.ints, ns)
	return c.added()
}

// addFloat adds one number.
func (c *column) addFloat(f float32) error {
	if c.whole() {
		return c.fail(c.n, "%g must be a list of numbers", f)
	}
	if c.kind == class || c.kind == ident {
		if f == float32(math.Trunc(float64(f))) && math.Abs(float64(f)) < 1<<24 && c.kind == class {
			return c.addInt(int64(f))
		}
		return c.fail(c.n, "%g must be a whole number", f)
	}
	if c.kind == text {
		return c.addText(strconv.AppendFloat(nil, float64(f), 'g', -1, 32))
	}
	if err := c.room(12); err != nil {
		return err
	}
	c.floats = append(c.floats, f)
	if c.kind == vector {
		c.ends = append(c.ends, int32(len(c.floats)))
	}
	return c.added()
}

// addItem adds a number of a list that endList ends.
func (c *column) addItem(f float32) error {
	if err := c.room(4); err != nil {
		return err
	}
	c.floats = append(c.floats, f)
	return nil
}

// endList ends the list of a row. null: one of its items is.
func (c *column) endList(null bool) error {
	if err := c.room(8); err != nil {
		return err
	}
	from := 0
	if c.n > 0 {
		from = int(c.ends[c.n-1])
	}
	most, what := c.b.classes, "classes"
	if c.role == roleFeatures {
		most, what = c.b.items, "features"
	}
	if n := len(c.floats) - from; n > most {
		return wire.Errorf(wire.TooLarge, "row %d, %s (column %s): %d %s, at most %d", c.n, c.path, c.name, n, what,
			most)
	}
	if null {
		c.floats = c.floats[:from]
		return c.addNull()
	}
	c.ends = append(c.ends, int32(len(c.floats)))
	return c.added()
}

// repeat adds the last row until there are n. Of one id for several rows, each gets its number behind it.
func (c *column) repeat(n int) error {
	last := c.n - 1
	if n <= c.n {
		return nil
	}
	if !c.some {
		return c.times(n, c.addAbsent)
	}
	if c.null[last] {
		return c.times(n, c.addNull)
	}
	switch c.kind {
	case ident:
		return c.number(n)
	case text:
		s := slices.Clone(c.words.At(last))
		return c.times(n, func() error { return c.addText(s) })
	case number:
		f := c.floats[last]
		return c.times(n, func() error { return c.addFloat(f) })
	case vector:
		row := slices.Clone(c.row(last))
		return c.times(n, func() error {
			for _, f := range row {
				if err := c.addItem(f); err != nil {
					return err
				}
			}
			return c.endList(false)
		})
	}
	v := c.ints[last]
	return c.times(n, func() error { return c.addInstant(v) })
}

func (c *column) times(n int, add func() error) error {
	for c.n < n {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// number replaces the last id by those of the rows up to n: ID/0, ID/1 and so on.
func (c *column) number(n int) error {
	last := c.n - 1
	var id []byte
	if c.numbers == 1 {
		if last > 0 {
			return c.fail(last, "one number is the id of several rows: the ids of other rows are numbers, too")
		}
		id = strconv.AppendInt(nil, c.ints[last], 10)
		c.numbers = 2
	} else {
		id = slices.Clone(c.words.At(last))
	}
	c.words.Data = c.words.Data[:len(c.words.Data)-len(c.words.At(last))]
	c.words.Ends, c.ints = c.words.Ends[:last], c.ints[:last]
	c.null, c.n = c.null[:last], last
	id = append(id, '/')
	prefix := len(id)
	for i := 0; c.n < n; i++ {
		id = strconv.AppendInt(id[:prefix], int64(i), 10)
		if err := c.addText(id); err != nil {
			return err
		}
	}
	return nil
}

// addAny adds a value of Go, as Avro and Protobuf have them after decoding.
func (c *column) addAny(v any) error {
	switch v := v.(type) {
	case nil:
		return c.addNull()
	case string:
		return c.addText([]byte(v))
	case []byte:
		return c.addText(v)
	case bool:
		return c.addBool(v)
	case int64:
		return c.addInt(v)
	case uint64:
		if v > math.MaxInt64 && c.kind != ident {
			return c.fail(c.n, "%d is more than 63 bits", v)
		}
		return c.addInt(int64(v))
	case float32:
		return c.addFloat(v)
	case float64:
		if c.kind == class || c.kind == instant || c.kind == text || c.kind == ident {
			return c.addNumber(strconv.AppendFloat(nil, v, 'f', -1, 64))
		}
		return c.addFloat(float32(v))
	case json.Number:
		return c.addNumber([]byte(v))
	case time.Time:
		if c.kind != instant {
			return c.addText([]byte(v.Format(time.RFC3339Nano)))
		}
		return c.addTime(v)
	}
	return c.fail(c.n, "a %T must be %s", v, c.wants())
}

// addWritten adds a number that is written as text.
func (c *column) addWritten(s []byte) error {
	if !isNumber(s) {
		return c.fail(c.n, "%.40q must be a number", s)
	}
	return c.addNumber(s)
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if c != '.' && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0
}
