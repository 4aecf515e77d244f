package pipeline

import (
	"fmt"
	"math"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// Time is event time: nanoseconds since 1970-01-01T00:00:00Z.
type Time = arrowio.Time

const (
	// NoTime is before every event time: nothing has been seen.
	NoTime Time = math.MinInt64
	// EndTime is after every event time.
	EndTime Time = math.MaxInt64
)

// PaneIndex returns floor(t / length): the pane that t falls into is [i·length, (i+1)·length).
func PaneIndex(t Time, length int64) int64 {
	i := t / length
	if t%length < 0 {
		i--
	}
	return i
}

// CheckPaneLength refuses a state whose pane length, of, differs from the configured one: pane numbers would mean
// other times. A state without panes has length 0.
func CheckPaneLength(of, length int64) error {
	if of != 0 && of != length {
		return fmt.Errorf("the panes were %w: event_time.pane was %v and is %v: set it back", ErrSettings,
			time.Duration(of), time.Duration(length))
	}
	return nil
}

// Format renders an event time as RFC 3339 in UTC, with as many decimals as it needs.
func Format(t Time) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
