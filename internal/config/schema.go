package config

import (
	"encoding/json"
	"math"
	"reflect"
	"time"
)

// schemaNode is the part of JSON Schema (2020-12) that a configuration needs.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        any                    `json:"type,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Additional  *bool                  `json:"additionalProperties,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	MinItems    int                    `json:"minItems,omitempty"`
	MinLength   int                    `json:"minLength,omitempty"`
	Enum        []string               `json:"enum,omitempty"`
	Pattern     string                 `json:"pattern,omitempty"`
	Minimum     *float64               `json:"minimum,omitempty"`
	Above       *float64               `json:"exclusiveMinimum,omitempty"`
	Maximum     *float64               `json:"maximum,omitempty"`
	Default     any                    `json:"default,omitempty"`
}

// durationPattern is what time.ParseDuration takes, less signs and fractions without digits.
const durationPattern = `^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`

// Schema is the JSON Schema of the configuration file, for editors. Conditions between keys are not in it.
func Schema() []byte {
	root := schemaOf(reflect.ValueOf(Default()), "")
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "plumbline configuration"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: schema: " + err.Error())
	}
	return append(out, '\n')
}

// schemaOf describes the key at pattern, whose default is def.
func schemaOf(def reflect.Value, pattern string) *schemaNode {
	f := fields[pattern]
	n := &schemaNode{Description: f.doc}
	switch t := def.Type(); {
	case t == durationType:
		n.Type, n.Pattern = "string", durationPattern
		if !def.IsZero() {
			n.Default = show(time.Duration(def.Int()))
		}
	case t.Kind() == reflect.Struct:
		no := false
		n.Type, n.Additional, n.Properties = "object", &no, map[string]*schemaNode{}
		for i := range t.NumField() {
			key := keyOf(t.Field(i))
			n.Properties[key] = schemaOf(def.Field(i), join(pattern, key))
		}
		return n
	case t.Kind() == reflect.Slice:
		n.Type = "array"
		n.Items = schemaOf(reflect.New(t.Elem()).Elem(), pattern+"[]")
		if f.required {
			n.MinItems = 1
		}
		if t.Elem().Kind() != reflect.Struct && def.Len() > 0 {
			n.Default = def.Interface()
		}
		return n
	case t.Kind() == reflect.String:
		n.Type, n.Enum, n.Pattern = "string", f.enum, f.pattern
		if f.required {
			n.MinLength = 1
		} else if n.Pattern != "" {
			n.Pattern = "^$|" + n.Pattern
		}
	case t.Kind() == reflect.Bool:
		n.Type = "boolean"
	case t.Kind() == reflect.Float64:
		n.Type = "number"
		n.bounds(f)
	default:
		n.Type = "integer"
		n.bounds(f)
	}
	if n.Default == nil && !def.IsZero() { // the items of lists have no defaults: their values here are zero
		n.Default = def.Interface()
	}
	return n
}

func (n *schemaNode) bounds(f field) {
	if math.IsInf(f.lo, 0) || math.IsInf(f.hi, 0) {
		return
	}
	lo, hi := f.lo, f.hi
	n.Maximum = &hi
	if f.above {
		n.Above = &lo
	} else {
		n.Minimum = &lo
	}
}
