package calibrator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxParam bounds every parameter, so that no finite row overflows a product of two of them.
const maxParam = 1e6

// parametric is a calibrator that Encode writes as a params object.
type parametric interface {
	Calibrator
	params() any  // pointer to a struct; every field has a JSON key
	check() error // names the parameter that is out of range
}

// parametrics makes, by method, an empty calibrator to decode into.
var parametrics = map[string]func() parametric{
	"platt":                     func() parametric { return &Platt{} },
	"beta":                      func() parametric { return &Beta{} },
	"isotonic":                  func() parametric { return &Isotonic{} },
	"histogram":                 func() parametric { return &Histogram{} },
	"vector":                    func() parametric { return &Vector{} },
	"ensemble_temperature":      func() parametric { return &Ensemble{} },
	"class_temperature":         func() parametric { return &ClassTemperature{} },
	"matrix":                    func() parametric { return &Matrix{} },
	"dirichlet":                 func() parametric { return &Dirichlet{} },
	"parameterised_temperature": func() parametric { return &ParameterisedTemperature{} },
	"scaling_binning":           func() parametric { return &ScalingBinning{} },
	"metacal":                   func() parametric { return &MetaCal{} },
	"spline":                    func() parametric { return &Spline{} },
	"intra_order_preserving":    func() parametric { return &IntraOrderPreserving{} },
	"class_weights":             func() parametric { return &ClassWeights{} },
}

// decodeParams reads raw into c: every key of its params exactly once, none null, nothing else.
func decodeParams(c parametric, raw json.RawMessage) (Calibrator, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); raw == nil || err != nil || keys == nil {
		return nil, fmt.Errorf("params: not an object, required for method %s", c.Method())
	}
	want := keysOf(c.params())
	for _, key := range want {
		if v, ok := keys[key]; !ok || bytes.Equal(v, []byte("null")) {
			return nil, fmt.Errorf("params: %s: absent, required for method %s", key, c.Method())
		} else if v[0] == '[' && bytes.Contains(v, []byte("null")) { // which would be read as 0
			return nil, fmt.Errorf("params: %s: null in the list, allowed are numbers", key)
		}
		delete(keys, key)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		return nil, fmt.Errorf("params: %q: unknown, allowed for method %s are %s", key, c.Method(),
			strings.Join(want, ", "))
	}
	if err := noRepeats(raw, len(want)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, c.params()); err != nil {
		return nil, fmt.Errorf("params: %w", plain(err))
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Method(), err)
	}
	return c, nil
}

// noRepeats refuses an object with more than n keys, which with n distinct ones has one twice.
func noRepeats(raw json.RawMessage, n int) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	got := 0
	for ; dec.More(); got++ {
		if _, err := dec.Token(); err != nil {
			return err
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if got != n {
		return fmt.Errorf("params: %d keys, allowed are %d, each once", got, n)
	}
	return nil
}

// within checks a named list of parameters.
func within(name string, v []float64, lo, hi float64) error {
	for i, x := range v {
		if !(x >= lo && x <= hi) || math.IsNaN(x) {
			return fmt.Errorf("%s %d: %g, allowed %g..%g", name, i, x, lo, hi)
		}
	}
	return nil
}

// rising refuses values of which one is not above the one before it.
func rising(name string, values []float64) error {
	for i := 1; i < len(values); i++ {
		if !(values[i] > values[i-1]) {
			return fmt.Errorf("%s %d: %g after %g, allowed are rising values", name, i, values[i], values[i-1])
		}
	}
	return nil
}
