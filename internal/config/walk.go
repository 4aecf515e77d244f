package config

import "reflect"

// walk calls visit for every key under v in file order. Path has indices ("windows[1].slide"), pattern has
// "[]" in their place and is the key of the table fields.
func walk(v reflect.Value, path, pattern string, visit func(path, pattern string, v reflect.Value)) {
	if path != "" {
		visit(path, pattern, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			key := keyOf(v.Type().Field(i))
			walk(v.Field(i), join(path, key), join(pattern, key), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), indexed(path, i), pattern+"[]", visit)
		}
	}
}

// key is one key of the file by its pattern, with its Go type.
type key struct {
	pattern string
	t       reflect.Type
}

// keys lists every key in file order, list items included.
func keys() []key {
	var out []key
	var types func(t reflect.Type, pattern string)
	types = func(t reflect.Type, pattern string) {
		if pattern != "" {
			out = append(out, key{pattern, t})
		}
		switch t.Kind() {
		case reflect.Struct:
			for i := range t.NumField() {
				types(t.Field(i).Type, join(pattern, keyOf(t.Field(i))))
			}
		case reflect.Slice:
			types(t.Elem(), pattern+"[]")
		}
	}
	types(reflect.TypeFor[Config](), "")
	return out
}
