package inputs

import (
	"encoding/json"
	"fmt"
	"strings"
)

// avroType is a type of an Avro schema.
type avroType struct {
	kind    avroKind
	name    string // of named types, in full
	fields  []avroField
	items   *avroType // of an array, of a map's values
	of      []*avroType
	symbols []string
	size    int
	unit    int64 // nanoseconds of a number that is a time; 0 = it is none
	decimal bool
}

type avroField struct {
	name string
	t    *avroType
}

type avroKind uint8

const (
	avroNull avroKind = iota
	avroBoolean
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes
	avroString
	avroRecord
	avroEnum
	avroArray
	avroMap
	avroUnion
	avroFixed
)

var avroPrimitives = map[string]avroKind{"null": avroNull, "boolean": avroBoolean, "int": avroInt, "long": avroLong,
	"float": avroFloat, "double": avroDouble, "bytes": avroBytes, "string": avroString}

// avroUnits are the logical types that are times.
var avroUnits = map[string]int64{"timestamp-millis": 1e6, "timestamp-micros": 1e3, "timestamp-nanos": 1,
	"local-timestamp-millis": 1e6, "local-timestamp-micros": 1e3, "local-timestamp-nanos": 1, "date": 86400e9}

// avroNames are the named types of a schema and of those that it refers to.
type avroNames map[string]*avroType

// parseAvro reads a schema, as section "Schema Declaration" of the specification has it.
func parseAvro(s *Schema) (*avroType, error) {
	names := avroNames{}
	for _, other := range s.Refers {
		if _, err := names.text(other.Text); err != nil {
			return nil, fmt.Errorf("%s: %w", other.Name, err)
		}
	}
	return names.text(s.Text)
}

func (names avroNames) text(text string) (*avroType, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		// a primitive type may stand alone, without quotes
		if _, ok := avroPrimitives[strings.TrimSpace(text)]; !ok {
			return nil, fmt.Errorf("no JSON: %w", err)
		}
		v = strings.TrimSpace(text)
	}
	return names.read(v, "", 0)
}

func (names avroNames) read(v any, space string, depth int) (*avroType, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case string:
		return names.named(v, space)
	case []any:
		t := &avroType{kind: avroUnion}
		for _, branch := range v {
			b, err := names.read(branch, space, depth+1)
			if err != nil {
				return nil, err
			}
			t.of = append(t.of, b)
		}
		return t, nil
	case map[string]any:
		return names.object(v, space, depth)
	}
	return nil, fmt.Errorf("a type is %.40v: must be a name, a list or an object", v)
}

// named finds a type by its name.
func (names avroNames) named(name, space string) (*avroType, error) {
	if kind, ok := avroPrimitives[name]; ok {
		return &avroType{kind: kind}, nil
	}
	if t := names[inSpace(name, space)]; t != nil {
		return t, nil
	}
	if t := names[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("type %.80q is not declared before it is used", name)
}

func inSpace(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func (names avroNames) object(v map[string]any, space string, depth int) (*avroType, error) {
	kind, isName := v["type"].(string)
	if !isName {
		return names.read(v["type"], space, depth+1)
	}
	switch kind {
	case "array", "map":
		t := &avroType{kind: avroArray}
		key := "items"
		if kind == "map" {
			t.kind, key = avroMap, "values"
		}
		var err error
		t.items, err = names.read(v[key], space, depth+1)
		return t, err
	case "record", "error", "enum", "fixed":
		return names.declare(kind, v, space, depth)
	}
	t, err := names.named(kind, space)
	if err != nil {
		return nil, err
	}
	logical, _ := v["logicalType"].(string)
	if t.kind > avroString || logical == "" {
		return t, nil
	}
	own := *t
	if own.kind == avroInt || own.kind == avroLong {
		own.unit = avroUnits[logical]
	}
	own.decimal = logical == "decimal"
	return &own, nil
}

// declare reads a named type.
func (names avroNames) declare(kind string, v map[string]any, space string, depth int) (*avroType, error) {
	name, _ := v["name"].(string)
	if s, ok := v["namespace"].(string); ok && !strings.Contains(name, ".") {
		space = s
	}
	t := &avroType{name: inSpace(name, space)}
	if i := strings.LastIndexByte(t.name, '.'); i >= 0 {
		space = t.name[:i]
	}
	if name == "" {
		return nil, fmt.Errorf("a %s without a name", kind)
	}
	names[t.name] = t
	switch kind {
	case "enum":
		t.kind = avroEnum
		symbols, _ := v["symbols"].([]any)
		for _, s := range symbols {
			text, _ := s.(string)
			t.symbols = append(t.symbols, text)
		}
		return t, nil
	case "fixed":
		t.kind = avroFixed
		size, ok := v["size"].(float64)
		if !ok || size < 0 || size > 1<<20 {
			return nil, fmt.Errorf("fixed %.80s: size %v", t.name, v["size"])
		}
		t.size, t.decimal = int(size), v["logicalType"] == "decimal"
		return t, nil
	}
	t.kind = avroRecord
	fields, ok := v["fields"].([]any)
	if !ok {
		return nil, fmt.Errorf("record %.80s has no fields", t.name)
	}
	for _, f := range fields {
		f, _ := f.(map[string]any)
		name, _ := f["name"].(string)
		of, err := names.read(f["type"], space, depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %.80q: %w", name, err)
		}
		t.fields = append(t.fields, avroField{name, of})
	}
	return t, nil
}
