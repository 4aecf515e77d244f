package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Example is a configuration file with a comment on every key; it parses to Default().
func Example() []byte {
	var b bytes.Buffer
	b.WriteString("# plumbline configuration: every key with its default. Keys that are left out keep their default.\n" +
		"# Durations have units: 500ms, 10s, 5m, 1h30m. Check a file: plumbline config check FILE\n")
	writeSection(&b, reflect.ValueOf(Default()), "", 0, true)
	return b.Bytes()
}

// writeSection writes the keys of a struct; comments is false for list items after the first.
func writeSection(b *bytes.Buffer, v reflect.Value, pattern string, depth int, comments bool) {
	for i := range v.NumField() {
		if depth == 0 {
			b.WriteByte('\n')
		}
		key := keyOf(v.Type().Field(i))
		sub := join(pattern, key)
		if pattern == "windows[]" && v.Field(i).IsZero() {
			continue // of the other kind of window
		}
		indent := strings.Repeat("  ", depth)
		if item := strings.HasSuffix(pattern, "[]"); item && i == 0 {
			indent = strings.Repeat("  ", depth-1) + "- "
		}
		writeKey(b, v.Field(i), sub, key, indent, depth, comments)
	}
}

func writeKey(b *bytes.Buffer, v reflect.Value, pattern, key, indent string, depth int, comments bool) {
	comment := func(lead string) {
		if comments {
			fmt.Fprintf(b, "%s# %s\n", lead, describe(pattern, v.Type()))
		}
	}
	plain := strings.Repeat("  ", len(indent)/2)
	switch {
	case v.Kind() == reflect.Struct:
		comment(plain)
		fmt.Fprintf(b, "%s%s:\n", indent, key)
		writeSection(b, v, pattern, depth+1, comments)
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		comment(plain)
		fmt.Fprintf(b, "%s%s:\n", indent, key)
		for i := range v.Len() {
			writeSection(b, v.Index(i), pattern+"[]", depth+2, comments && i == 0)
		}
	default:
		line := fmt.Sprintf("%s%s: %s", indent, key, literal(v))
		if comments {
			line = fmt.Sprintf("%-40s # %s", line, describe(pattern, v.Type()))
		}
		b.WriteString(line + "\n")
	}
}

// describe is the meaning of a key with its range.
func describe(pattern string, t reflect.Type) string {
	f := fields[pattern]
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return f.doc + " [" + f.allowed(t) + "]"
	}
	return f.doc // the doc of a choice names its values
}

// literal is v in YAML.
func literal(v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		return show(v.Interface())
	case v.Kind() == reflect.String:
		s := v.String()
		if s == "" || strings.ContainsAny(s, ":#'\"{}[]&*!|>%@`") {
			return quoted(s)
		}
		return s
	case v.Kind() == reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = literal(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return show(v.Interface())
}
