package setting

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

// durationPattern matches what time.ParseDuration accepts, except signs and fractions without digits.
const durationPattern = `^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`

// Schema returns the JSON Schema of the struct c. The values of c are the defaults. Conditions between keys are not
// part of it.
func Schema(c any, title string) []byte {
	v := reflect.ValueOf(c)
	root := &schemaNode{Schema: "https://json-schema.org/draft/2020-12/schema", Title: title}
	meanings := map[string]string{}
	for _, f := range Fields(v.Type()) {
		meanings[f.Path] = f.Meaning
	}
	root.section(v, "", meanings)
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("setting: schema: " + err.Error())
	}
	return append(out, '\n')
}

// section describes a struct with the given defaults.
func (n *schemaNode) section(def reflect.Value, path string, meanings map[string]string) {
	no := false
	n.Type, n.Additional, n.Properties = "object", &no, map[string]*schemaNode{}
	for _, f := range fieldsOf(def.Type()) {
		f.Path = Join(path, f.Key)
		sub, v := &schemaNode{Description: meanings[f.Path]}, def.Field(f.index)
		n.Properties[f.Key] = sub
		switch {
		case v.Kind() == reflect.Struct:
			sub.section(v, f.Path, meanings)
		case v.Kind() == reflect.Slice:
			sub.list(f, v, meanings)
		default:
			sub.scalar(f.limits, f.Type, f.limits.required)
			sub.defaults(v)
		}
	}
}

func (n *schemaNode) list(f Field, def reflect.Value, meanings map[string]string) {
	n.Type, n.Items = "array", &schemaNode{}
	if f.limits.required {
		n.MinItems = 1
	}
	if sub := section(f.Type); sub != nil {
		n.Items.section(DefaultOf(sub), f.Path+"[]", meanings)
		return
	}
	n.Items.scalar(f.limits, f.Type.Elem(), !f.limits.blank)
	if def.Len() > 0 {
		n.Default = def.Interface()
	}
}

func (n *schemaNode) scalar(l limits, t reflect.Type, required bool) {
	switch {
	case t == durationType:
		n.Type, n.Pattern = "string", durationPattern
	case t.Kind() == reflect.String:
		n.Type, n.Enum, n.Pattern = "string", l.enum, formats[l.format].pattern
		if required && l.enum == nil {
			n.MinLength = 1
		} else if n.Pattern != "" {
			n.Pattern = "^$|" + n.Pattern
		}
	case t.Kind() == reflect.Bool:
		n.Type = "boolean"
	case t.Kind() == reflect.Float64:
		n.Type = "number"
		n.bounds(l)
	default:
		n.Type = "integer"
		n.bounds(l)
	}
}

func (n *schemaNode) defaults(def reflect.Value) {
	switch {
	case def.IsZero():
	case def.Type() == durationType:
		n.Default = Show(def.Interface().(time.Duration))
	default:
		n.Default = def.Interface()
	}
}

func (n *schemaNode) bounds(l limits) {
	if math.IsInf(l.lo, 0) || math.IsInf(l.hi, 0) {
		return
	}
	n.Maximum = &l.hi
	if l.above {
		n.Above = &l.lo
	} else {
		n.Minimum = &l.lo
	}
}
