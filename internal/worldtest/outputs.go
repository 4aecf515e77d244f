package worldtest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
)

// Firsts returns the outputs by stream and key, each in order, without repeats of a written one.
func Firsts(ms []pipeline.Message) map[string][]string {
	out, seen := map[string][]string{}, map[string]bool{}
	for _, m := range ms {
		lane := fmt.Sprintf("%s %s", m.Stream, m.Key)
		v := fmt.Sprintf("%d %s", m.Time, m.Value)
		if !seen[lane+v] {
			seen[lane+v] = true
			out[lane] = append(out[lane], v)
		}
	}
	return out
}

// DecodeAll returns the records of a stream.
func DecodeAll[T any](t testing.TB, ms []pipeline.Message, s pipeline.Stream) []T {
	t.Helper()
	var out []T
	for _, m := range ms {
		if m.Stream == s {
			var v T
			if err := json.Unmarshal(m.Value, &v); err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// CompareOutputs reports the first output that differs between two results of Firsts.
func CompareOutputs(t testing.TB, got, want map[string][]string) {
	t.Helper()
	for lane := range want {
		g, w := got[lane], want[lane]
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s: output %d is\n%s, want\n%s", lane, i, g[i], w[i])
				return
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: %d outputs, want %d", lane, len(g), len(w))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lanes of outputs, want %d", len(got), len(want))
	}
}
