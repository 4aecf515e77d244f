package engine_test

import (
	"testing"

	"github.com/plumbline/plumbline/internal/engine"
)

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		n    []int
		want string
	}{
		{nil, ""}, {[]int{4}, "4"}, {[]int{1, 2}, "1 to 2"}, {[]int{1, 3}, "1, 3"},
		{[]int{1, 2, 3, 7, 9, 10}, "1 to 3, 7, 9 to 10"},
	} {
		if got := engine.Ranges(c.n); got != c.want {
			t.Errorf("Ranges(%v) = %q, want %q", c.n, got, c.want)
		}
	}
}

// TestParsePosition: what a person may write for a place in a topic.
func TestParsePosition(t *testing.T) {
	for text, ok := range map[string]bool{
		"earliest": true, "latest": true, "0": true, "1234567890123": true, "2026-01-31T12:00:00Z": true,
		"2026-01-31T12:00:00.5+02:00": true,
		"":                            false, "Earliest": false, "1.5": false, "2026-01-31": false, "noon": false,
	} {
		if _, err := engine.ParsePosition(text); (err == nil) != ok {
			t.Errorf("ParsePosition(%q): %v, want it allowed: %t", text, err, ok)
		}
	}
}
