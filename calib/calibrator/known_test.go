package calibrator

import (
	"os"
	"strings"
	"testing"
)

// TestMethodsAreKnown: what applies an encoded calibrator in Python, and the documents, know every method. A model
// server that does not know the method serves uncalibrated probabilities.
func TestMethodsAreKnown(t *testing.T) {
	var all, fitted, encoded, sized []string
	for _, m := range Methods() {
		if all = append(all, m.Name); m.Parameters(2) > 0 {
			fitted = append(fitted, m.Name)
		}
	}
	for name, empty := range parametrics {
		encoded = append(encoded, name)
		if _, ok := empty().(Sized); ok {
			sized = append(sized, name)
		}
	}
	for _, place := range []struct {
		file, quote, lacks string
		names              []string
	}{
		{"clients/python/src/plumbline/_maps.py", `"`, "has no map for", encoded},
		{"clients/python/src/plumbline/_calibrator.py", `"`, "does not say for how many classes is", sized},
		{"examples/calibrate/calibrate.py", `"`, "has no map for", encoded},
		{"docs/format.md", "`", "does not list the parameters of", encoded},
		{"docs/math.md", "`", "has no formula of", fitted},
		{"calib/calibrator/doc.go", "", "does not say what is kept by", all},
	} {
		text, err := os.ReadFile("../../" + place.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range place.names {
			if !strings.Contains(string(text), place.quote+name+place.quote) {
				t.Errorf("%s %s %s (see registry)", place.file, place.lacks, name)
			}
		}
	}
}
