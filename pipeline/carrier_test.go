package pipeline

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline/tracing"
)

// TestCarriers: each place in a trace keeps its own tracestate, wherever a record has it.
func TestCarriers(t *testing.T) {
	h := func(kv ...string) (out []Header) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, Header{kv[i], []byte(kv[i+1])})
		}
		return out
	}
	one := []tracing.Carrier{{Parent: "p", State: "a=1"}}
	for name, c := range map[string]struct {
		headers []Header
		want    []tracing.Carrier
	}{
		"none":   {h("other", "x", "tracestate", "a=1"), nil},
		"after":  {h("traceparent", "p", "other", "x", "tracestate", "a=1"), one},
		"before": {h("tracestate", "a=1", "traceparent", "p"), one},
		"two": {
			h("traceparent", "p", "tracestate", "a=1", "traceparent", "q", "traceparent", "r", "tracestate", "c=3"),
			[]tracing.Carrier{{Parent: "p", State: "a=1"}, {Parent: "q"}, {Parent: "r", State: "c=3"}},
		},
	} {
		got := carriers(c.headers)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		var back []Header
		for _, place := range got {
			back = append(back, TraceHeaders(place)...)
		}
		if again := carriers(back); !slices.Equal(again, c.want) {
			t.Errorf("%s, written and read again: %v, want %v", name, again, c.want)
		}
	}
}
