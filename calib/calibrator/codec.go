package calibrator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Version is the format version that Encode writes and Decode reads. A change that an old reader would
// misunderstand raises it.
const Version = 1

// ErrFormat is wrapped by every error of Decode.
var ErrFormat = errors.New("calibrator format")

// wire is the JSON object; temperature is there for the method of that name only, params for all but that and identity.
type wire struct {
	Version     *int            `json:"version"`
	Method      string          `json:"method"`
	Temperature *float64        `json:"temperature,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"`
}

// Encode returns c as one JSON object, always the same bytes for the same calibrator, and floats that read back
// bit for bit:
//
//	{"version":1,"method":"identity"}
//	{"version":1,"method":"temperature","temperature":2.03}
//	{"version":1,"method":"platt","params":{"slope":0.71,"intercept":-0.2}}
//
// It returns an error for a calibrator of a type that is not this package's, or one that was never made.
func Encode(c Calibrator) ([]byte, error) {
	v := Version
	w := wire{Version: &v}
	switch c := c.(type) {
	case Identity:
	case Temperature:
		if _, err := NewTemperature(c.t); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		w.Temperature = &c.t
	case parametric:
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("encode: %s: %w", c.Method(), err)
		}
		text, err := json.Marshal(c.params())
		if err != nil {
			return nil, fmt.Errorf("encode: %s: %w", c.Method(), err)
		}
		w.Params = text
	default:
		return nil, fmt.Errorf("encode: calibrator %T, allowed are those of this package", c)
	}
	w.Method = c.Method()
	return json.Marshal(w)
}

// Decode reads what Encode wrote. It is strict: an unknown version, method or key, a missing or extra parameter,
// a value out of range, or anything after the object is an error that wraps ErrFormat.
func Decode(b []byte) (Calibrator, error) {
	c, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return c, nil
}

// decodeObject reads one object with no key that v lacks and nothing behind it.
func decodeObject(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("%s: unknown, allowed are %s", key, strings.Join(keysOf(v), ", "))
		}
		return plain(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data after the object at offset %d, allowed is one object", dec.InputOffset())
	}
	return nil
}

// keysOf are the JSON keys of the struct that v points to.
func keysOf(v any) (out []string) {
	kind := reflect.TypeOf(v).Elem()
	for i := range kind.NumField() {
		key, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		out = append(out, key)
	}
	return out
}

// plain says what is wrong with the text, and in words of JSON what a value of the wrong type is.
func plain(err error) error {
	var e *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("no text, allowed is one object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the object has no end: the text is cut off")
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	case !errors.As(err, &e):
		return err
	}
	want := "an object"
	switch e.Type.Kind() {
	case reflect.Int:
		want = "a whole number"
	case reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "text"
	case reflect.Slice:
		want = "a list"
	}
	return fmt.Errorf("%s: %s, allowed is %s", cmp.Or(e.Field, "the whole"), jsonKind(e.Value), want)
}

// jsonKind is a kind of value as the library calls it, in words.
func jsonKind(value string) string {
	kind, number, _ := strings.Cut(value, " ")
	switch {
	case number != "": // one that does not fit
		return number
	case kind == "string":
		return "text"
	case kind == "bool":
		return "true or false"
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	}
	return "a " + kind
}

func decode(b []byte) (Calibrator, error) {
	var w wire
	if err := decodeObject(bytes.TrimPrefix(b, []byte("\ufeff")), &w); err != nil {
		return nil, err
	}
	if w.Version == nil {
		return nil, fmt.Errorf("version: absent, allowed %d", Version)
	}
	if *w.Version != Version {
		return nil, fmt.Errorf("version: %d, allowed %d", *w.Version, Version)
	}
	if mk, ok := parametrics[w.Method]; ok {
		if w.Temperature != nil {
			return nil, fmt.Errorf("temperature: present, not allowed for method %s", w.Method)
		}
		return decodeParams(mk(), w.Params)
	}
	identity, temperature := w.Method == Identity{}.Method(), w.Method == Temperature{}.Method()
	switch {
	case !identity && !temperature:
		return nil, fmt.Errorf("method: %q, allowed are identity, temperature, %s", w.Method,
			strings.Join(slices.Sorted(maps.Keys(parametrics)), ", "))
	case w.Params != nil:
		return nil, fmt.Errorf("params: present, not allowed for method %q", w.Method)
	case identity && w.Temperature != nil:
		return nil, errors.New("temperature: present, not allowed for method identity")
	case identity:
		return Identity{}, nil
	case w.Temperature == nil:
		return nil, errors.New("temperature: absent, required for method temperature")
	}
	return asCalibrator(NewTemperature(*w.Temperature))
}

func asCalibrator(t Temperature, err error) (Calibrator, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
