package arrowio

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// EpochUnit is the unit, in nanoseconds, of a time since 1970 that is given as a number: of seconds below 10¹¹, of
// milliseconds below 10¹⁴, of microseconds below 10¹⁷, else of nanoseconds. So times from 1973 on are told apart, and
// small numbers count seconds. Records and files share the rule: a replay has the times of the stream.
func EpochUnit(n int64) int64 {
	switch {
	case n < 1e11 && n > -1e11:
		return 1e9
	case n < 1e14 && n > -1e14:
		return 1e6
	case n < 1e17 && n > -1e17:
		return 1e3
	}
	return 1
}

// Epoch makes nanoseconds of a time since 1970 whose unit follows from its size: math.MaxInt64, which no row may have,
// where they are more than fit.
func Epoch(n int64) Time {
	unit := EpochUnit(n)
	if n > math.MaxInt64/unit || n < -math.MaxInt64/unit {
		return math.MaxInt64
	}
	return n * unit
}

// SpelledDate is the date and time that the digits of a number spell, such as 20260301 or 202603011230; "" where they
// spell none from 1900 to 2099. As times since 1970 such numbers would be of 1970, 1976 or no year of 64 bits: they are
// not meant so.
func SpelledDate(x float64) string {
	layout, shown := "20060102", "2006-01-02"
	switch {
	case x >= 19000101 && x <= 20991231:
	case x >= 190001010000 && x <= 209912312359:
		layout, shown = "200601021504", "2006-01-02T15:04"
	case x >= 19000101000000 && x <= 20991231235959:
		layout, shown = "20060102150405", "2006-01-02T15:04:05"
	default:
		return ""
	}
	t, err := time.Parse(layout, strconv.FormatFloat(x, 'f', -1, 64))
	if err != nil {
		return ""
	}
	return t.Format(shown)
}

// EpochText is Epoch of a decimal number, which may have a fraction and an exponent. The digits of a fraction count as
// they are written, where there is no exponent. unit is that of EpochUnit.
func EpochText(s string) (t Time, unit int64, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0123456789") != "" {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || x-x != 0 {
			return 0, 0, false
		}
		t, unit = EpochFloat(x)
		return t, unit, true
	}
	unit = EpochUnit(n)
	part := int64(0)
	for i, scale := 0, unit/10; i < len(fraction) && scale > 0; i, scale = i+1, scale/10 {
		part += int64(fraction[i]-'0') * scale
	}
	if strings.HasPrefix(s, "-") {
		part = -part
	}
	if t = Epoch(n); t == math.MaxInt64 {
		return t, unit, true
	}
	return t + part, unit, true
}

// EpochFloat is Epoch of a number that may have a fraction, such as Python's time.time().
func EpochFloat(x float64) (t Time, unit int64) {
	unit = EpochUnit(int64(min(max(x, -1e18), 1e18)))
	if ns := math.Round(x * float64(unit)); ns > -1<<63 && ns < 1<<63 {
		return int64(ns), unit
	}
	return math.MaxInt64, unit
}
