package arrowio_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

// TestEpochText: the size of a number tells its unit, at each edge; digits of a fraction count as they are written.
func TestEpochText(t *testing.T) {
	for _, c := range []struct {
		text     string
		ns, unit int64
	}{
		{"0", 0, 1e9}, {"5", 5e9, 1e9}, {"-5.25", -525e7, 1e9}, {"-0.5", -5e8, 1e9},
		{"1700000000", 17e17, 1e9}, {"1700000000.123456789", 1_700_000_000_123_456_789, 1e9},
		{"1700000000.1234567899", 1_700_000_000_123_456_789, 1e9},
		{"100000000000", 1e17, 1e6}, {"1700000000001", 1_700_000_000_001e6, 1e6}, {"1700000000000.5", 17e17 + 5e5, 1e6},
		{"100000000000000", 1e17, 1e3}, {"1700000000000001", 1_700_000_000_000_001e3, 1e3},
		{"100000000000000000", 1e17, 1}, {"1700000000000000001", 1_700_000_000_000_000_001, 1},
		{"1.7e9", 17e17, 1e9}, {"1.7E+12", 17e17, 1e6}, {"17e17", 17e17, 1}, {"-1.7e12", -17e17, 1e6},
		{"99999999999", math.MaxInt64, 1e9}, {"-99999999999.5", math.MaxInt64, 1e9}, {"1e300", math.MaxInt64, 1},
	} {
		ns, unit, ok := arrowio.EpochText(c.text)
		if !ok || ns != c.ns || unit != c.unit {
			t.Errorf("%s: got %d in %d ns, %v; want %d in %d ns", c.text, ns, unit, ok, c.ns, c.unit)
		}
	}
	for _, text := range []string{"", "x", "1.x", "1.2.3", "nan", "inf", "2026-01-31"} {
		if ns, _, ok := arrowio.EpochText(text); ok {
			t.Errorf("%q: got %d", text, ns)
		}
	}
}

// TestSpelledDate: dates as whole numbers are told from times since 1970.
func TestSpelledDate(t *testing.T) {
	for x, want := range map[float64]string{
		20260301: "2026-03-01", 20991231: "2099-12-31", 202603011230: "2026-03-01T12:30",
		20260301123059: "2026-03-01T12:30:59",
		20261301:       "", 20260230: "", 20260301.5: "", 202603012460: "", 1700000000: "", 1700000000000: "",
		2026: "", 0: "", math.NaN(): "", math.Inf(1): "", -20260301: "",
	} {
		if got := arrowio.SpelledDate(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
}
