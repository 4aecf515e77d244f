package table

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// TestLabelsFromOne: labels 1 to K are refused with what makes them classes; other labels without it.
func TestLabelsFromOne(t *testing.T) {
	for _, c := range []struct{ labels, want string }{
		{"1,2,3", "label 3 at row 2, allowed are 0 to 2, and -1 or null where not known; " +
			"if 1 is the first class: --classes 1,2,3"},
		{"3,,1", "; if 1 is the first class: --classes 1,2,3"},
		{"0,2,3", "label 3 at row 2, allowed are 0 to 2, and -1 or null where not known"},
		{"1,2,4", "label 4 at row 2, allowed are 0 to 2, and -1 or null where not known"},
	} {
		text := "probs_0,probs_1,probs_2,label\n"
		for y := range strings.SplitSeq(c.labels, ",") {
			text += "0.5,0.25,0.25," + y + "\n"
		}
		file := writeOdd(t, text)
		if _, err := Open(file, Options{}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.labels, err, c.want)
		}
		got, err := Open(file, Options{Classes: []string{"1", "2", "3"}})
		if hint := strings.Contains(c.want, "--classes"); hint != (err == nil) {
			t.Errorf("%s with --classes: got %v, %v", c.labels, got, err)
		}
	}
}

// TestLabelsThatAreNull: an entry of a dictionary may be null, and so may every list; both are labels that are not
// known. An empty list is none.
func TestLabelsThatAreNull(t *testing.T) {
	js := func(t *testing.T, as arrow.DataType, text string) arrow.Array {
		a, _, err := array.FromJSON(memory.DefaultAllocator, as, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	type typ = arrow.DataType
	list, ints := arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.PrimitiveTypes.Int32
	for name, c := range map[string]struct {
		dictionary, labels string
		as                 typ
		want               []int32
		refused            string
	}{
		"entry of text":   {`["a","b",null,"c"]`, `[0,1,2,3]`, arrow.BinaryTypes.String, []int32{0, 1, -1, 2}, ""},
		"entry of number": {`[0,null,2]`, `[2,1,0,null]`, ints, []int32{2, -1, 0, -1}, ""},
		"lists":           {"", `[null,null,null,null]`, list, []int32{-1, -1, -1, -1}, ""},
		"lists of one":    {"", `[null,[1],null,[2]]`, list, []int32{-1, 1, -1, 2}, ""},
		"one hot":         {"", `[null,[0,1,0],null,[1,0,0]]`, list, []int32{-1, 1, -1, 0}, ""},
		"empty list":      {"", `[null,[],null,null]`, list, nil, "row 1 holds no 1"},
	} {
		t.Run(name, func(t *testing.T) {
			labels := arrow.Array(nil)
			if c.dictionary == "" {
				labels = js(t, c.as, c.labels)
			} else {
				as := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: c.as}
				labels = array.NewDictionaryArray(as, js(t, as.IndexType, c.labels), js(t, c.as, c.dictionary))
			}
			probs := js(t, arrow.ListOf(arrow.PrimitiveTypes.Float64),
				`[[0.8,0.1,0.1],[0.1,0.8,0.1],[0.1,0.1,0.8],[1,0,0]]`)
			got, err := openColumns(t, []string{"probs", "label"}, []arrow.Array{probs, labels})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "labels", got.Label, c.want)
		})
	}
}
