package setting

import (
	"reflect"
	"strings"
)

// MustBe says what a value of type t must be.
func MustBe(t reflect.Type) string {
	if t == durationType {
		return "must be a duration with units, such as 500ms, 10s, 5m or 1h30m"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return MustBe(t.Elem())
	case reflect.Bool:
		return "must be true or false"
	case reflect.Float64:
		return "must be a number"
	case reflect.String:
		return "must be text"
	case reflect.Slice:
		return "must be a list"
	case reflect.Struct, reflect.Map:
		return "must be a mapping"
	}
	return "must be a whole number"
}

// MustBe says what a value of the key, or an item of its list, must be. For a number it says the range too, and how one
// is written: a person who wrote 2% may not know that it is a fraction.
func (f Field) MustBe() string {
	t := f.Type
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	must := MustBe(t)
	whole := t.Kind() == reflect.Int || t.Kind() == reflect.Int64
	if t == durationType || !whole && t.Kind() != reflect.Float64 {
		return must
	}
	if !f.limits.above {
		must += " from"
	}
	must += " " + f.limits.allowed(t)
	switch {
	case whole && strings.HasSuffix(f.Key, "bytes"):
		return must + ", or one with a unit, such as 32MiB"
	case !whole && t == f.Type && !f.Default.IsZero():
		return must + ", such as " + Show(f.Default.Interface())
	}
	return must
}
