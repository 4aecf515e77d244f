package setting

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Example returns the struct c as YAML with a comment on every key: its meaning, and the range of a number.
func Example(c any) []byte {
	w := writer{fields: map[string]Field{}}
	v := reflect.ValueOf(c)
	for _, f := range Fields(v.Type()) {
		w.fields[f.Path] = f
	}
	w.section(v, "", 0, true)
	return w.Bytes()
}

// writer holds the output so far, and the keys by path.
type writer struct {
	bytes.Buffer
	fields map[string]Field
}

// section writes the keys of a struct. comments is false for all items of a list but the first.
func (w *writer) section(v reflect.Value, path string, depth int, comments bool) {
	item, first := strings.HasSuffix(path, "[]"), true
	for _, f := range fieldsOf(v.Type()) {
		if depth == 0 {
			w.WriteByte('\n')
		}
		fv := v.Field(f.index)
		if item && fv.IsZero() && !f.HasDefault {
			continue
		}
		indent := strings.Repeat("  ", depth)
		if item && first {
			indent = strings.Repeat("  ", depth-1) + "- "
		}
		first = false
		w.key(fv, w.fields[Join(path, f.Key)], indent, comments)
	}
}

func (w *writer) key(v reflect.Value, f Field, indent string, comments bool) {
	depth := len(indent) / 2
	if section(f.Type) == nil || v.Kind() == reflect.Slice && v.Len() == 0 {
		line := fmt.Sprintf("%s%s: %s", indent, f.Key, literal(v))
		if comments {
			line = fmt.Sprintf("%-40s # %s", line, f.comment())
		}
		w.WriteString(line + "\n")
		return
	}
	if comments {
		fmt.Fprintf(w, "%s# %s\n", strings.Repeat("  ", depth), f.comment())
	}
	fmt.Fprintf(w, "%s%s:\n", indent, f.Key)
	if v.Kind() == reflect.Struct {
		w.section(v, f.Path, depth+1, comments)
		return
	}
	for i := range v.Len() {
		w.section(v.Index(i), f.Path+"[]", depth+2, comments && i == 0)
	}
}

// comment returns the meaning of a key with its range. For a choice the meaning already names the values.
func (f Field) comment() string {
	switch f.Type.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return f.Meaning + " [" + f.limits.allowed(f.Type) + "]"
	}
	return f.Meaning
}
