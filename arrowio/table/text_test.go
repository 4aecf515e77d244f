package table

import (
	"bytes"
	"io"
	"testing"
)

// FuzzText reads CSV and JSON that may be anything, with and without names of the user: a table fits together, or
// there is an error.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"y_true,y_prob\n1.0,0.25\n,0.5\n", "label;probs_0;probs_1\ncat;1;0\ndog;0;1\n", "0,1,y\n0.5,0.5,True\n",
		"probs,label_0,label_1\n\"[0.1, 0.9]\",0,1\n", "ts,logit,y\n2026-01-02 03:04:05,1,-100\n",
		`{"logits": [1, 2], "label": 0}` + "\n" + `{"logits": [1, 2]}`, `[{"y_true": "a", "prob": 0.5, "time": 1.7e9}]`,
		`{"probs": [[0.5, 0.5], [0, 1]], "labels": [1, null]}`, `{"a": {"b": {"c": [1, 2]}}, "y": [[1], [0]]}`,
		"proba_b,proba_a,target,weight,id,features_0\n0.5,0.5,a,1,x,3\n", "\ufeffprob\n1e400\n", "{", "[[", "\"",
		"a\x00",
	} {
		f.Add([]byte(s), "", "")
		f.Add([]byte(s), "label", "a,b")
	}
	f.Fuzz(func(t *testing.T, data []byte, label, classes string) {
		o := Options{Labels: label}
		if classes != "" {
			o.Classes = []string{classes, "b"}
		}
		table, err := readText(func() (io.Reader, error) { return bytes.NewReader(data), nil }, data, o)
		if err == nil {
			err = table.check()
		}
		if err != nil {
			return
		}
		n := len(table.Scores32) + len(table.Scores64)
		if n != table.N*table.K || table.Label != nil && len(table.Label) != table.N ||
			table.TS != nil && len(table.TS) != table.N || table.IDs != nil && len(table.IDs) != table.N ||
			len(table.Features) != table.N*table.D || table.Weight != nil && len(table.Weight) != table.N {
			t.Errorf("%d rows of %d: %d scores, %d labels, %d times, %d ids, %d features", table.N, table.K, n,
				len(table.Label), len(table.TS), len(table.IDs), len(table.Features))
		}
		for name, v := range table.Slices {
			if len(v) != table.N {
				t.Errorf("%q: %d values for %d rows", name, len(v), table.N)
			}
		}
	})
}
