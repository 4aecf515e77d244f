package table

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// moments are the times of a file as they are read. Numbers have the unit that makes the greatest of them a time of
// these years.
type moments struct {
	ns       []arrowio.Time
	numbers  bool
	greatest int64
}

// Layouts of pandas, polars and databases; without a zone it is UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999", zoneLayout, "2006-01-02 15:04", "2006-01-02",
	"2006-01-02 15:04:05.999999999 -0700", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z0700"}

// zoneLayout is for the name of a zone. The names say an offset for UTC only.
const zoneLayout = "2006-01-02 15:04:05.999999999 MST"

func (m *moments) nanoseconds(t int64) { m.ns = append(m.ns, t) }

func (m *moments) number(v int64) {
	m.numbers = true
	if v < 0 {
		m.greatest = max(m.greatest, -max(v, -math.MaxInt64))
	}
	m.greatest = max(m.greatest, v)
	m.ns = append(m.ns, v)
}

func (m *moments) text(s string) error {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		m.number(v)
		return nil
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return m.fraction(x)
	}
	for _, layout := range timeLayouts {
		if at, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			if zone, _ := at.Zone(); layout == zoneLayout && zone != "UTC" && zone != "GMT" {
				return fmt.Errorf("%s: %s is the name of several zones: write an offset, such as -05:00", s, zone)
			}
			if year := at.Year(); year < 1678 || year > 2261 {
				return fmt.Errorf("%s is outside the years 1678 to 2261", s)
			}
			m.ns = append(m.ns, at.UnixNano())
			return nil
		}
	}
	return fmt.Errorf("%s is neither a time such as 2026-01-31T12:00:00Z nor a number since 1970", quoteName(s))
}

// float takes a number with a fraction, such as time.time() returns.
func (m *moments) fraction(x float64) error {
	if !(math.Abs(x) < 1<<62) {
		return fmt.Errorf("%v is no time", x)
	}
	if x == math.Trunc(x) {
		m.number(int64(x))
		return nil
	}
	// The fraction is kept in units of the column: those of its greatest number.
	unit := unitOf(int64(math.Abs(x)))
	m.ns = append(m.ns, int64(math.Round(x*float64(unit))))
	return nil
}

// unitOf is the nanoseconds of the unit in which a number is a time before 2261; small ones are nanoseconds.
func unitOf(greatest int64) int64 {
	const small, most = 1e8, 9.2e18 // 3 years of seconds; what int64 holds
	if greatest < small {
		return 1
	}
	for _, unit := range []int64{1e9, 1e6, 1e3} {
		if greatest < most/unit {
			return unit
		}
	}
	return 1
}

func (m *moments) finish() []arrowio.Time {
	if unit := unitOf(m.greatest); m.numbers && unit > 1 {
		for i, v := range m.ns {
			if v <= m.greatest && v >= -m.greatest {
				m.ns[i] = v * unit
			}
		}
	}
	return m.ns
}
