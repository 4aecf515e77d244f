package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Reference is the table of all keys for docs/operations.md, in Markdown.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString("| key | default | allowed | meaning |\n|---|---|---|---|\n")
	defaults := map[string]string{}
	walk(reflect.ValueOf(Default()), "", "", func(_, pattern string, v reflect.Value) {
		if !strings.Contains(pattern, "[]") {
			defaults[pattern] = cell(v)
		}
	})
	walk(reflect.ValueOf(defaultRule("")), "", "", func(_, pattern string, v reflect.Value) {
		if pattern != "name" {
			defaults["rules[]."+pattern] = cell(v)
		}
	})
	for _, k := range keys() {
		f := fields[k.pattern]
		if k.t.Kind() == reflect.Struct && strings.HasSuffix(k.pattern, "[]") {
			continue // the list's own row says it
		}
		allowed := ""
		if k.t.Kind() != reflect.Struct && k.t.Kind() != reflect.Slice {
			allowed = f.allowed(k.t)
		}
		if f.pattern != "" {
			allowed = "`" + allowed + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.pattern, defaults[k.pattern], allowed, f.doc)
	}
	return b.Bytes()
}

// cell is a default in the table; "" for sections and lists of sections.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Struct || v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
		return ""
	}
	return "`" + literal(v) + "`"
}
