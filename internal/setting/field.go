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

// Field is one key, with what its comment and tags say.
type Field struct {
	Path    string // list items have "[]" after the list's key: windows[].slide
	Key     string // the last part of Path
	Type    reflect.Type
	Meaning string // one line
	// HasDefault says that there is a default tag. Without one the default of a key is zero; in a list item such a
	// key has no default, and zero means that it is absent.
	HasDefault bool
	Default    reflect.Value
	index      int // in its struct
	limits     limits
}

// limits are the values that a key, or the items of a list, may have.
type limits struct {
	lo, hi   float64 // of numbers and durations (in nanoseconds)
	above    bool    // lo itself is excluded
	enum     []string
	format   string
	required bool // no empty text; on a list: an item
	blank    bool // items of a list may be empty texts
}

// chooser is a struct some of whose texts have choices that code knows, in place of the tag enum.
type chooser interface{ Choices(key string) []string }

// Fields lists the keys of the struct t by its tags, those of inner structs and of list items included, in the order
// of the fields. A section stands before its keys. It panics on a wrong tag.
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

// section is the struct that t or its items are, or nil.
func section(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

// Join appends a key to the path of its section.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item is the path of item i of the list at path.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

var read sync.Map // []Field by reflect.Type: the tags of each struct are read once

// fieldsOf reads the tags of the fields of t, without those of inner structs and without meanings.
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
	v, err := parseDefault(def, sf.Type)
	if err != nil {
		wrong("default %q: %v", def, err)
	}
	f.Default = v
	return f
}

// readLimits reads the tags about the values of a key of type t.
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
