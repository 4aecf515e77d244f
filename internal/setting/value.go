package setting

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Default returns a C with the default of every key.
func Default[C any]() C {
	var c C
	fill(reflect.ValueOf(&c).Elem())
	return c
}

// DefaultOf is like Default, for a type that is known only at run time. For a struct it gives the values of keys that a
// list item leaves out.
func DefaultOf(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t.Kind() == reflect.Struct {
		fill(v)
	}
	return v
}

// fill sets the fields of the struct v to their defaults. Lists of structs have no default here; whoever composes the
// structs sets them.
func fill(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		switch to := v.Field(f.index); {
		case to.Kind() == reflect.Struct:
			fill(to)
		case to.Kind() == reflect.Slice && f.HasDefault:
			to.Set(reflect.AppendSlice(reflect.MakeSlice(f.Type, 0, f.Default.Len()), f.Default))
		case f.HasDefault:
			to.Set(f.Default)
		}
	}
}

// ParseValue parses a text as a value of type t, of a kind that a key may have. List items are separated by commas. A
// text of nothing is the zero value.
func ParseValue(s string, t reflect.Type) (reflect.Value, error) {
	if s == "" {
		return reflect.Zero(t), nil
	}
	if t.Kind() != reflect.Slice {
		return parseScalar(s, t)
	}
	parts := strings.Split(s, ",")
	out := reflect.MakeSlice(t, len(parts), len(parts))
	for i, part := range parts {
		v, err := parseScalar(part, t.Elem())
		if err != nil {
			return out, err
		}
		out.Index(i).Set(v)
	}
	return out, nil
}

func parseScalar(s string, t reflect.Type) (reflect.Value, error) {
	var v any
	var err error
	switch {
	case t == durationType:
		v, err = time.ParseDuration(s)
	case t.Kind() == reflect.String:
		v = s
	case t.Kind() == reflect.Bool:
		v, err = strconv.ParseBool(s)
	case t.Kind() == reflect.Float64:
		v, err = strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		v, err = parseInt(s)
	default:
		err = fmt.Errorf("a %s cannot be a key", t)
	}
	if err != nil {
		return reflect.Value{}, err
	}
	return reflect.ValueOf(v).Convert(t), nil
}

var byteUnits = []string{"KiB", "MiB", "GiB", "TiB", "PiB"}

// OldOctal reports whether a whole number begins with a zero that is not alone: eight or ten is its base by the version
// of YAML.
func OldOctal(s string) bool {
	digits := strings.TrimLeft(s, "+-")
	return len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789_") == ""
}

// parseInt parses a whole number, which may have underscores and a unit of bytes.
func parseInt(s string) (int64, error) {
	shift := 0
	for i, unit := range byteUnits {
		if number, ok := strings.CutSuffix(s, unit); ok {
			s, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err == nil && (n > math.MaxInt64>>shift || n < math.MinInt64>>shift || OldOctal(s)) {
		err = strconv.ErrRange
	}
	return n << shift, err
}

// ParseBytes parses a number of bytes as keys have it: 4GiB, 500_000.
func ParseBytes(s string) (int64, error) {
	n, err := parseInt(s)
	if err != nil || n < 0 {
		return 0, errors.New("must be such as 4GiB or 500_000")
	}
	return n, nil
}

// HasByteUnit reports whether s ends as sizes do.
func HasByteUnit(s string) bool {
	return slices.ContainsFunc(byteUnits, func(unit string) bool { return strings.HasSuffix(s, unit) })
}

// Text is a text key and its value.
type Text struct{ Key, Value string }

// Texts lists the text keys of the struct c, without those of inner structs.
func Texts(c any) []Text {
	v, out := reflect.ValueOf(c), []Text(nil)
	for _, f := range fieldsOf(v.Type()) {
		if f.Type.Kind() == reflect.String {
			out = append(out, Text{f.Key, v.Field(f.index).String()})
		}
	}
	return out
}

// Show formats a value as in the file, but texts without quotes.
func Show(value any) string {
	switch x := value.(type) {
	case time.Duration:
		s := x.String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}

// literal formats v as YAML.
func literal(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); s == "" || strings.ContainsAny(s, ":#'\"{}[]&*!|>%@`") {
			return strconv.Quote(s)
		}
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = literal(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return Show(v.Interface())
}
