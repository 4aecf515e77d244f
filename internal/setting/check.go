package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is a value that is not allowed.
type Problem struct {
	Path    string // path of the key, such as windows[1].slide; "" = the whole
	Value   string // as in the file; "" = none
	Message string // what is allowed
}

// Error returns PATH: VALUE: MESSAGE without the parts that are empty.
func (p Problem) Error() string {
	s := p.Message
	if p.Value != "" {
		s = p.Value + ": " + s
	}
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	return s
}

// Report collects the problems of a section.
type Report struct {
	path     string
	problems *[]Problem
}

// Fail reports that the value at key, a path within the section, does not meet the condition in format. In format, @key
// stands for the full path of another key of the section.
func (r *Report) Fail(key string, value any, format string, args ...any) {
	format = strings.ReplaceAll(format, "@", strings.TrimSuffix(Join(r.path, "@"), "@"))
	p := Problem{Path: Join(r.path, key), Value: Show(value), Message: fmt.Sprintf(format, args...)}
	*r.problems = append(*r.problems, p)
}

// Sound reports whether nothing in the section at key, or the value there, has been refused: what is derived from a
// value need not expect what its own check refuses.
func (r *Report) Sound(key string) bool {
	path := Join(r.path, key)
	return !slices.ContainsFunc(*r.problems, func(p Problem) bool {
		rest, within := strings.CutPrefix(p.Path, path)
		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Quote marks a value in Fail as a text.
func Quote(s string) string { return strconv.Quote(s) }

// Distinct returns a function that checks that the items of a list have different names. key is the path of the name
// within an item, with its dot.
func (r *Report) Distinct(list, key string) func(i int, name string) {
	seen := map[string]int{}
	return func(i int, name string) {
		if first, dup := seen[name]; dup && name != "" {
			r.Fail(Item(list, i)+key, Quote(name), "is that of @%s; each must be there once", Item(list, first))
			return
		}
		seen[name] = i
	}
}

// checked is implemented by a struct with conditions between its keys.
type checked interface{ Check(*Report) }

// Check returns every problem of the struct c: violated limits of the tags, and what the Check methods of c and its
// inner structs report.
func Check(c any) []Problem {
	var out []Problem
	check(reflect.ValueOf(c), &Report{problems: &out})
	return out
}

func check(v reflect.Value, r *Report) {
	for _, f := range fieldsOf(v.Type()) {
		at, fv := &Report{path: Join(r.path, f.Key), problems: r.problems}, v.Field(f.index)
		switch {
		case fv.Kind() == reflect.Struct:
			check(fv, at)
		case fv.Kind() == reflect.Slice:
			checkList(f, fv, at)
		default:
			f.limits.check(fv, f.limits.required, at)
		}
	}
	if c, ok := v.Interface().(checked); ok {
		c.Check(r)
	}
}

func checkList(f Field, v reflect.Value, r *Report) {
	if f.limits.required && v.Len() == 0 {
		r.here("[]", "must have an item")
	}
	for i := range v.Len() {
		at := &Report{path: Item(r.path, i), problems: r.problems}
		if section(f.Type) != nil {
			check(v.Index(i), at)
		} else {
			f.limits.check(v.Index(i), !f.limits.blank, at)
		}
	}
}

// here reports a problem with the report's own path.
func (r *Report) here(value, message string) {
	*r.problems = append(*r.problems, Problem{Path: r.path, Value: value, Message: message})
}

// check checks one value against the limits.
func (l limits) check(v reflect.Value, required bool, r *Report) {
	var x float64
	switch v.Kind() {
	case reflect.String:
		l.text(v.String(), required, r)
		return
	case reflect.Int, reflect.Int64:
		x = float64(v.Int())
	case reflect.Float64:
		x = v.Float()
	default:
		return
	}
	if !(x >= l.lo && x <= l.hi) || l.above && x <= l.lo { // a NaN fails this
		r.here(Show(v.Interface()), "must be "+l.allowed(v.Type()))
	}
}

func (l limits) text(s string, required bool, r *Report) {
	switch {
	case l.enum != nil:
		if !slices.Contains(l.enum, s) {
			r.here(strconv.Quote(s), "must be "+l.allowed(reflect.TypeFor[string]()))
		}
	case s == "" && required:
		r.here(strconv.Quote(s), "must not be empty")
	case s != "" && l.format != "":
		if f := formats[l.format]; !f.is(s) {
			r.here(strconv.Quote(s), "must "+f.must)
		}
	}
}

// allowed describes the allowed values of type t in words; "" if any value is allowed.
func (l limits) allowed(t reflect.Type) string {
	lo, hi := Show(l.lo), Show(l.hi)
	switch {
	case l.enum != nil:
		return "one of " + strings.Join(l.enum, ", ")
	case l.format != "":
		return formats[l.format].allowed
	case t == durationType:
		lo, hi = Show(time.Duration(l.lo)), Show(time.Duration(l.hi))
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		lo, hi = strconv.FormatInt(int64(l.lo), 10), strconv.FormatInt(int64(l.hi), 10)
	case t.Kind() != reflect.Float64:
		return ""
	}
	if l.above {
		return "above " + lo + " and at most " + hi
	}
	return lo + " to " + hi
}
