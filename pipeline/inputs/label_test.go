package inputs

import (
	"strings"
	"testing"
)

// TestLabelsByName: a number is a class by its name where the classes have numbers for names, as in files, and true is
// the class of that name; else they are places.
func TestLabelsByName(t *testing.T) {
	for _, c := range []struct {
		classes []string
		label   string
		want    int32
	}{
		{nil, `1`, 1}, {nil, `true`, 1}, {nil, `""`, -1}, {[]string{"cat", "dog"}, `1`, 1},
		{[]string{"cat", "dog"}, `"cat"`, 0}, {[]string{"cat", "dog"}, `true`, 1}, {[]string{"cat", "dog"}, `""`, -1},
		{[]string{"1", "2"}, `1`, 0}, {[]string{"1", "2"}, `2.0`, 1}, {[]string{"1", "2"}, `"1"`, 0},
		{[]string{"1", "0"}, `true`, 0}, {[]string{"1", "0"}, `0`, 1},
		{[]string{"True", "False"}, `true`, 0}, {[]string{"True", "False"}, `false`, 1},
	} {
		r := &Record{Value: []byte(`{"id":"a","prob":0.5,"label":` + c.label + `}`)}
		b := decoded(t, Config{Format: "json", Model: "m", Classes: c.classes}, r)
		got := int32(-1)
		if len(b[0].Label) > 0 {
			got = b[0].Label[0]
		}
		if got != c.want || strings.Join(b[0].Reject, "") != "" {
			t.Errorf("%q, %s: got %d, %q, want %d", c.classes, c.label, got, b[0].Reject, c.want)
		}
	}
	d, err := New(Config{Format: "json", Model: "m", Classes: []string{"1", "2"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Decode(&Record{Value: []byte(`{"id":"a","prob":0.5,"label":0}`)})
	if err == nil || !strings.Contains(err.Error(), "0 must be one of classes: 1, 2") {
		t.Errorf("0 of classes 1 and 2: got %v", err)
	}
}
