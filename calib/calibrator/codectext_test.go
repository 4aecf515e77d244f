package calibrator_test

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestDecodeInWords: errors are about the JSON, not about the program that reads it, and a byte order mark is none.
func TestDecodeInWords(t *testing.T) {
	for text, want := range map[string]string{
		"\ufeff{\"version\":1,\"method\":\"identity\"}":          "",
		`{"version":1,"method":"temperature","temperature":"2"}`: "temperature: text, allowed is a number",
		`{"version":"1","method":"identity"}`:                    "version: text, allowed is a whole number",
		`{"version":1.5,"method":"identity"}`:                    "version: 1.5, allowed is a whole number",
		`{"version":1,"method":["identity"]}`:                    "method: a list, allowed is text",
		`["identity"]`:                                           "the whole: a list, allowed is an object",
		`{"version":1,"method":"platt","params":{"slope":true,"intercept":0}}`: "params: slope: true or false, " +
			"allowed is a number",
		`{"version":1,"method":"vector","params":{"w":1,"b":[0,0]}}`: "params: w: a number, allowed is a list",
		`{"version":1,"method":"vector","params":{"w":[1e999,1],"b":[0,0]}}`: "params: w: 1e999, " +
			"allowed is a number",
		// What JavaScript writes for NaN is not 0.
		`{"version":1,"method":"vector","params":{"w":[null,1],"b":[0,0]}}`: "params: w: null in the list, " +
			"allowed are numbers",
		`{"version":1,"method":"isotonic","params":{"x":[0.1,0.5],"v":[0.2,null]}}`: "params: v: null in the list, " +
			"allowed are numbers",
		`{"version":1,"method":"vector","params":{"w":[1,1],"b":[0]}}`: "vector: w, b: 2 and 1 values, " +
			"allowed are as many of both, from 2",
		`{"version":1,"method":"isotonic","params":{"x":[0.1,0.5,0.4],"v":[0,0,1]}}`: "isotonic: x 2: 0.4 after 0.5, " +
			"allowed are rising values",
		`{"version":1,"method":"isotonic","params":{"x":[0.1,0.5],"v":[1,0]}}`: "isotonic: v 1: 0 after 1, " +
			"allowed are values that do not fall",
		`{"version":1,"method":"histogram","params":{"edges":[0,0,1],"values":[0,1]}}`: "histogram: edges 1: 0 after " +
			"0, allowed are rising values",
		`{"version":1,"method":"identity","kind":"x"}`: "\"kind\": unknown, allowed are version, method, " +
			"temperature, params",
		`{"version":1,"method":"platt","params":{"slope":1,"intercept":0,"b":1,"a":1}}`: "params: \"a\": unknown, " +
			"allowed for method platt are slope, intercept",
		"":              "no text, allowed is one object",
		`{"version":1,`: "the object has no end: the text is cut off",
		"PAR1":          "no JSON at byte 1",
	} {
		_, err := calibrator.Decode([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+want)) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestDecodeOfLaterMethod: a method that this build does not know is named, whatever parameters it has.
func TestDecodeOfLaterMethod(t *testing.T) {
	for _, text := range []string{`{"version":1,"method":"later"}`, `{"version":1,"method":"later","temperature":2}`,
		`{"version":1,"method":"later","params":{"slope":1}}`} {
		_, err := calibrator.Decode([]byte(text))
		if want := `method: "later", allowed are identity, temperature, `; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", text, err, want)
		}
	}
}
