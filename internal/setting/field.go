package setting

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxDuration is the longest duration that a key may have.
const maxDuration = 366 * 24 * time.Hour

var durationType = reflect.TypeFor[time.Duration]()

// Field is one key, as its comment and tags describe it.
type Field struct {
	Path    string // path; list items have "[]" after the key of the list: windows[].slide
	Key     string // the last part of Path
	Type    reflect.Type
	Meaning string // one line
	// HasDefault reports whether the field has a default tag. Without the tag the default is zero. In a list item a
	// zero key without the tag counts as absent.
	HasDefault bool
	Default    reflect.Value
	index      int // index of the field in its struct
	limits     limits
}

// limits are the allowed values of a key, or of the items of a list.
type limits struct {
	lo, hi   float64 // of numbers and durations (in nanoseconds)
	above    bool    // lo itself is not allowed
	enum     []string
	format   string
	required bool // a text must not be empty; a list must have an item
	blank    bool // items of a list may be empty texts
}

// chooser is implemented by a struct if only the code knows the choices for some of its texts. It replaces the tag
// enum.
type chooser interface{ Choices(key string) []string }

// Fields lists the keys of the struct t in the order of its fields, with those of inner structs and list items. A
// section comes before its keys. Fields panics on an invalid tag.
func Fields(t reflect.Type) []Field {
	var out []Field
	var add func(t reflect.Type, path string, docs meanings)
	add = func(t reflect.Type, path string, docs meanings) {
		docs = docs.of(t)
		for _, f := range fieldsOf(t) {
			f.Path = Join(path, f.Key)
			f.Meaning = docs[t.PkgPath()+"."+t.Name()+"."+t.Field(f.index).Name]
			out = append(out, f)
			if sub := section(f.Type); sub != nil {
				inner := f.Path
				if f.Type.Kind() == reflect.Slice {
					inner += "[]"
				}
				add(sub, inner, docs)
			}
		}
	}
	add(t, "", meanings{})
	return out
}

// section returns the struct type of t or of its items, or nil.
func section(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

// Join appends a key to the path of a section.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item returns the path of item i of the list at path.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

var read sync.Map // []Field by reflect.Type, so that the tags of each struct are read once

// fieldsOf reads the tags of the fields of t. It does not descend into inner structs and sets no meanings.
func fieldsOf(t reflect.Type) []Field {
	if fs, ok := read.Load(t); ok {
		return fs.([]Field)
	}
	fs := make([]Field, t.NumField())
	for i := range fs {
		fs[i] = readTags(t, i)
	}
	read.Store(t, fs)
	return fs
}

func readTags(t reflect.Type, i int) Field {
	sf := t.Field(i)
	wrong := func(format string, args ...any) {
		panic(fmt.Sprintf("setting: %s.%s: ", t, sf.Name) + fmt.Sprintf(format, args...))
	}
	key := sf.Tag.Get("yaml")
	if key == "" || key == "-" || strings.Contains(key, ",") || !sf.IsExported() {
		wrong("needs a plain yaml tag, and to be exported")
	}
	f := Field{Path: key, Key: key, Type: sf.Type, index: i}
	item := sf.Type
	if item.Kind() == reflect.Slice {
		item = item.Elem()
	}
	if item.Kind() == reflect.Struct {
		f.limits.required = sf.Tag.Get("required") == "true"
		return f
	}
	f.limits = readLimits(sf.Tag, item, wrong)
	if c, ok := reflect.Zero(t).Interface().(chooser); ok && item.Kind() == reflect.String {
		if choices := c.Choices(key); choices != nil {
			f.limits.enum = choices
		}
	}
	def, ok := sf.Tag.Lookup("default")
	f.HasDefault = ok
	v, err := ParseValue(def, sf.Type)
	if err != nil {
		wrong("default %q: %v", def, err)
	}
	f.Default = v
	return f
}

// readLimits reads the tags that limit the values of a key of type t.
func readLimits(tag reflect.StructTag, t reflect.Type, wrong func(string, ...any)) limits {
	l := limits{lo: math.Inf(-1), hi: math.Inf(1)}
	l.required, l.blank = tag.Get("required") == "true", tag.Get("blank") == "true"
	number := t.Kind() == reflect.Int || t.Kind() == reflect.Int64 || t.Kind() == reflect.Float64
	if t == durationType {
		l.lo, l.hi = 0, float64(maxDuration)
	}
	bound := func(name string, to *float64) bool {
		s, ok := tag.Lookup(name)
		if !ok {
			return false
		}
		v, err := parseScalar(s, t)
		if err != nil || !number {
			wrong("%s %q is no bound of a %s", name, s, t)
		}
		if *to = v.Convert(reflect.TypeFor[float64]()).Float(); math.IsNaN(*to) {
			wrong("%s is not a number", name)
		}
		return true
	}
	lo, hi := bound("min", &l.lo), bound("max", &l.hi)
	l.above = bound("above", &l.lo)
	if number && t != durationType && (lo == l.above || !hi) {
		wrong("a number needs min or above, and max")
	}
	if s := tag.Get("enum"); s != "" {
		l.enum = strings.Split(s, "|")
	}
	if l.format = tag.Get("format"); l.format != "" && formats[l.format].allowed == "" {
		wrong("no format is named %q", l.format)
	}
	return l
}
