package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Validate checks every range and every condition between keys. The error is Problems, with all of them, by
// path; Parse adds lines and columns.
func (c Config) Validate() error { return c.check().err() }

func (c Config) check() Problems {
	ck := &checker{}
	walk(reflect.ValueOf(c), "", "", ck.limits)
	ck.cross(c)
	return ck.problems
}

// checker collects problems.
type checker struct{ problems Problems }

// fail reports that the value at path is not what format says.
func (ck *checker) fail(path string, value any, format string, args ...any) {
	ck.problems = append(ck.problems, Problem{Path: path, Value: show(value), Message: fmt.Sprintf(format, args...)})
}

// limits checks one value by the table of fields alone.
func (ck *checker) limits(path, pattern string, v reflect.Value) {
	f, ok := fields[pattern]
	if !ok {
		panic("config: no entry for the key " + pattern)
	}
	switch v.Kind() {
	case reflect.String:
		ck.text(f, path, v.String())
	case reflect.Slice:
		if f.required && v.Len() == 0 {
			ck.fail(path, "[]", "must have an item")
		}
	case reflect.Int, reflect.Int64:
		x := float64(v.Int())
		if x < f.lo || x > f.hi || f.above && x <= f.lo {
			ck.fail(path, v.Interface(), "must be %s", f.allowed(v.Type()))
		}
	case reflect.Float64:
		x := v.Float()
		if !(x >= f.lo && x <= f.hi) || f.above && x <= f.lo { // a NaN is neither
			ck.fail(path, x, "must be %s", f.allowed(v.Type()))
		}
	}
}

func (ck *checker) text(f field, path, s string) {
	switch {
	case f.enum != nil:
		for _, e := range f.enum {
			if s == e {
				return
			}
		}
		ck.fail(path, quoted(s), "must be %s", f.allowed(reflect.TypeFor[string]()))
	case s == "" && f.required:
		ck.fail(path, quoted(s), "must not be empty")
	case s != "" && f.pattern != "":
		pattern := regexp.MustCompile(f.pattern)
		dots := ""
		if pattern.MatchString(".") { // names of files and topics
			dots = " and not be . or .."
		}
		if !pattern.MatchString(s) || s == "." || s == ".." {
			ck.fail(path, quoted(s), "must match %s%s", f.pattern, dots)
		}
	}
}

// allowed says in words what the field may be; "" where anything of its type.
func (f field) allowed(t reflect.Type) string {
	switch {
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	case t.Kind() == reflect.String && f.pattern != "":
		return f.pattern
	case t == durationType:
		return fmt.Sprintf("%s to %s", show(time.Duration(f.lo)), show(time.Duration(f.hi)))
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return fmt.Sprintf("%d to %d", int64(f.lo), int64(f.hi))
	case t.Kind() == reflect.Float64 && f.above:
		return fmt.Sprintf("above %s and at most %s", show(f.lo), show(f.hi))
	case t.Kind() == reflect.Float64:
		return fmt.Sprintf("%s to %s", show(f.lo), show(f.hi))
	}
	return ""
}

// show writes a value as the file would have it.
func show(value any) string {
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

// quoted is a text value in a message.
func quoted(s string) string { return strconv.Quote(s) }

// indexed is the path of item i of the list at path.
func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
