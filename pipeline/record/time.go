package record

import (
	"fmt"
	"math"
	"time"
)

// Time is a moment in Unix nanoseconds. Its text, in JSON too, is RFC 3339 in UTC with as many decimals as needed. The
// zero value is no time, and its text is empty; the epoch is a time.
type Time struct {
	ns    int64
	known bool
}

// At is the moment of so many Unix nanoseconds.
func At(ns int64) Time { return Time{ns, true} }

// Now is the time of the wall clock.
func Now() Time { return At(time.Now().UnixNano()) }

// Nearest is a time in Unix nanoseconds, or the nearest that these can tell: they end in 1677 and 2262.
func Nearest(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// ParseTime reads RFC 3339 of any time zone.
func ParseTime(text string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Time{}, err
	}
	if ns := t.UnixNano(); time.Unix(0, ns).Equal(t) {
		return At(ns), nil
	}
	return Time{}, fmt.Errorf("time %s: its nanoseconds since 1970 are not a 64-bit number", text)
}

// UnixNano returns the Unix nanoseconds, 0 where there is no time.
func (t Time) UnixNano() int64 { return t.ns }

// Std is the same time of the standard library, its zero value where there is none.
func (t Time) Std() time.Time {
	if !t.known {
		return time.Time{}
	}
	return time.Unix(0, t.ns).UTC()
}

// About is the time for a sentence, to the second.
func (t Time) About() string { return t.Std().Format(time.RFC3339) }

// IsZero reports whether there is no time.
func (t Time) IsZero() bool { return !t.known }

// After reports whether t is later than o. No time is before every time.
func (t Time) After(o Time) bool { return t.known && (!o.known || t.ns > o.ns) }

// String implements fmt.Stringer.
func (t Time) String() string {
	b, _ := t.AppendText(nil)
	return string(b)
}

// AppendText implements encoding.TextAppender.
func (t Time) AppendText(b []byte) ([]byte, error) {
	if !t.known {
		return b, nil
	}
	return t.Std().AppendFormat(b, time.RFC3339Nano), nil
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler. A text that is no time gives none: what else its record says
// counts still.
func (t *Time) UnmarshalText(text []byte) error {
	*t, _ = ParseTime(string(text))
	return nil
}
