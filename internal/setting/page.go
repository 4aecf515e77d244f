package setting

import (
	"fmt"
	"reflect"
	"strings"
)

// Page returns the Markdown reference of all keys of the struct c, one chapter for each section. Keys outside sections
// come first. Defaults are the values of c.
func Page(c any) []byte {
	v := reflect.ValueOf(c)
	var own, chapters strings.Builder
	for _, f := range Fields(v.Type()) {
		top, _, _ := strings.Cut(strings.TrimSuffix(f.Path, "[]"), ".")
		switch {
		case top == f.Path && section(f.Type) == nil:
			item(&own, f, v)
		case top == f.Path:
			fmt.Fprintf(&chapters, "\n## %s\n%s\n\n", f.Key, f.Meaning)
		default:
			item(&chapters, f, v)
		}
	}
	return []byte(own.String() + chapters.String())
}

// item writes a key with its default, its allowed values and its meaning. root holds the defaults.
func item(b *strings.Builder, f Field, root reflect.Value) {
	allowed := f.limits.allowed(f.Type)
	if f.Type.Kind() == reflect.Slice {
		allowed = f.limits.allowed(f.Type.Elem())
	}
	switch f.limits.format {
	case "":
	case "name", "topic":
		allowed = "" // the page states these once
	default:
		allowed = "`" + allowed + "`"
	}
	key := f.Path
	switch v := at(root, f.Path); {
	case section(f.Type) != nil:
		key += ":"
	case v.IsValid():
		key += ": " + literal(v)
	case f.HasDefault:
		key += ": " + literal(f.Default)
	case allowed == "" && f.Type.Kind() != reflect.String && f.limits.format == "":
		allowed = typeName(f.Type)
	}
	fmt.Fprintf(b, "- `%s`%s %s\n", key, bracketed(allowed), f.Meaning)
}

// bracketed is what a key allows, in brackets and short: (1…5), (>0…300), (fan, grill).
func bracketed(allowed string) string {
	if allowed == "" || allowed == anyTime {
		return ""
	}
	allowed = strings.TrimPrefix(allowed, "one of ")
	return " (" + strings.NewReplacer("above ", ">", " and at most ", "…", " to ", "…").Replace(allowed) + ")"
}

// at returns the value at path. It is invalid if the path leads through a list.
func at(v reflect.Value, path string) reflect.Value {
	for path != "" {
		var key string
		key, path, _ = strings.Cut(path, ".")
		i := Index(v.Type(), key)
		if i < 0 {
			return reflect.Value{}
		}
		v = v.Field(i)
	}
	return v
}

// Index returns the index of the field with the given key in the struct t, or -1.
func Index(t reflect.Type, key string) int {
	for _, f := range fieldsOf(t) {
		if f.Key == key {
			return f.index
		}
	}
	return -1
}

// Keys lists the keys of the struct t in order, without those of inner structs.
func Keys(t reflect.Type) []string {
	fs := fieldsOf(t)
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.Key
	}
	return keys
}

// typeName returns the name of a type in documents.
func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "list"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case t.Kind() == reflect.Struct:
		return "section"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "switch"
	case t.Kind() == reflect.Float64:
		return "number"
	}
	return "whole number"
}

// anyTime is the range of most times; the page states it once.
const anyTime = "0s to 8784h"
