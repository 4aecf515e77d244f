package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// moments are the times of a file as they are read. Numbers have one unit, which their size tells as in records:
// another one would be that of a value that stands for no time, or the column holds something else.
type moments struct {
	ns     []arrowio.Time
	handed int   // times that have been taken out of ns
	unit   int64 // of the numbers; 0 before the first, other than 0, has shown it
	shown  string
	at     int // the row of shown
}

// Layouts of pandas, polars and databases; without a zone it is UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999", zoneLayout, "2006-01-02 15:04", "2006-01-02",
	"2006-01-02 15:04:05.999999999 -0700", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z0700",
	"2006-01-02 15:04:05.999999999Z07"}

// zoneLayout is for the name of a zone. The names say an offset for UTC only.
const zoneLayout = "2006-01-02 15:04:05.999999999 MST"

func (m *moments) nanoseconds(t int64) { m.ns = append(m.ns, t) }

func (m *moments) number(v int64) error {
	return m.since(arrowio.Epoch(v), arrowio.EpochUnit(v), float64(v),
		func() string { return strconv.FormatInt(v, 10) })
}

// fraction takes a number that may have one, such as time.time() returns.
func (m *moments) fraction(x float64) error {
	if x-x != 0 {
		return fmt.Errorf("%v is no time", x)
	}
	t, unit := arrowio.EpochFloat(x)
	return m.since(t, unit, x, func() string { return strconv.FormatFloat(x, 'f', -1, 64) })
}

// unitNames are what messages call units.
var unitNames = map[int64]string{1e9: "seconds", 1e6: "milliseconds", 1e3: "microseconds", 1: "nanoseconds"}

// Days of a spreadsheet since 1899-12-30, from 2000 to 2100.
const firstSerial, lastSerial = 36526, 73051

// since takes the number x of a unit. 0 is 1970 in any.
func (m *moments) since(t arrowio.Time, unit int64, x float64, text func() string) error {
	if date := arrowio.SpelledDate(x); date != "" {
		return fmt.Errorf("%s is no time since 1970 but the date %s: write it so, or a number since 1970", text(), date)
	}
	switch {
	case m.unit == 0 && t != 0 && x > firstSerial && x < lastSerial:
		return fmt.Errorf("%s is of 1970-01-01 as seconds, and a date as days of a spreadsheet: write a date", text())
	case t == math.MaxInt64:
		return fmt.Errorf("%s is outside the years 1678 to 2261 in %s, its unit by its size", text(), unitNames[unit])
	case t == 0:
	case m.unit == 0:
		m.unit, m.shown, m.at = unit, text(), m.handed+len(m.ns)
	case unit != m.unit:
		return fmt.Errorf("%s is a time in %s by its size, %s at row %d one in %s: allowed is one unit in all rows",
			text(), unitNames[unit], m.shown, m.at, unitNames[m.unit])
	}
	m.nanoseconds(t)
	return nil
}

// date takes a time of a calendar, as the file has it in text.
func (m *moments) date(at time.Time, text string) error {
	if year := at.Year(); year < 1678 || year > 2261 {
		return fmt.Errorf("%s is outside the years 1678 to 2261", text)
	}
	m.nanoseconds(at.UnixNano())
	return nil
}

func (m *moments) text(s string) error {
	if t, unit, ok := arrowio.EpochText(s); ok {
		x, _ := strconv.ParseFloat(s, 64)
		return m.since(t, unit, x, func() string { return strings.Clone(s) })
	}
	for _, layout := range timeLayouts {
		if at, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			if zone, _ := at.Zone(); layout == zoneLayout && zone != "UTC" && zone != "GMT" {
				return fmt.Errorf("%s: %s is the name of several zones: write an offset, such as -05:00", s, zone)
			}
			return m.date(at, s)
		}
	}
	return fmt.Errorf("%s is neither a time such as 2026-01-31T12:00:00Z nor a number since 1970", quoteName(s))
}
