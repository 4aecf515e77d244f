package client

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio"
)

// For one value beyond these limits, or those of package arrowio, plumbline refuses a whole message, with the rows of
// other calls that are in it: so no row may be queued that has one.
const (
	maxMessage = 8 << 20 // bytes, kafka.message_max_bytes; more is sent in parts
	// Ids and slices have no limit of their own there, but a row of any must fit into a message, and its schema into
	// 256 KiB.
	maxID     = 64 << 10
	maxSlices = 256
)

// farthest is how many nanoseconds from 1970 a time may be.
const farthest = 9_100_000_000_000_000_000

var earliest, latest = time.Unix(0, -farthest).UTC(), time.Unix(0, farthest).UTC()

// reserved are the columns that are no slices.
var reserved = []string{"id", "ts", "logits", "logit", "probs", "prob", "label", "label_ts", "features", "model",
	"version", "served", "weight"}

// textFault says why a text is not taken; "" where it is.
func textFault(s string) string {
	switch {
	case len(s) > arrowio.DefaultMaxText:
		return fmt.Sprintf("more than %d bytes", arrowio.DefaultMaxText)
	case !utf8.ValidString(s):
		return "not UTF-8"
	}
	return ""
}

func checkModel(model, version string) error {
	if model == "" {
		return errors.New("model: must not be empty")
	}
	if why := textFault(model); why != "" {
		return fmt.Errorf("model %.40q: %s", model, why)
	}
	if why := textFault(version); why != "" {
		return fmt.Errorf("version %.40q: %s", version, why)
	}
	return nil
}

// checkShape returns an error where no row of the call would be taken.
func (c *call) checkShape() error {
	switch {
	case c.Classes > arrowio.DefaultMaxClasses:
		return fmt.Errorf("%d classes, at most %d", c.Classes, arrowio.DefaultMaxClasses)
	case c.d > arrowio.DefaultMaxFeatures:
		return fmt.Errorf("%d features a row, at most %d", c.d, arrowio.DefaultMaxFeatures)
	case len(c.columns) > maxSlices:
		return fmt.Errorf("%d slices, at most %d", len(c.columns), maxSlices)
	}
	for _, s := range c.columns {
		name, why := s.Name, textFault(s.Name)
		switch {
		case name == "":
			why = "a name must not be empty"
		case slices.Contains(reserved, name):
			why = "a slice cannot have this name"
		}
		if why != "" {
			return fmt.Errorf("slice %.40q: %s", name, why)
		}
	}
	return nil
}

// faults says by row why it would not be taken. Scores and weights that are none are for plumbline to judge: it counts
// them by model, and takes the other rows of the message.
func (c *call) faults() map[int]string {
	var out map[int]string
	mark := func(row int, why string) {
		if out == nil {
			out = map[int]string{}
		}
		if out[row] == "" {
			out[row] = why
		}
	}
	each(c.IDs, c.n, mark, func(id string) string {
		switch {
		case id == "":
			return "id: empty"
		case len(id) > maxID:
			return fmt.Sprintf("id: more than %d bytes", maxID)
		}
		return ""
	})
	each(c.Times, c.n, mark, func(t time.Time) string {
		if t.Before(earliest) || t.After(latest) {
			return "time: not from " + earliest.Format(time.DateOnly) + " to " + latest.Format(time.DateOnly)
		}
		return ""
	})
	if c.labels {
		each(c.Labels, c.n, mark, func(y int32) string {
			if y < 0 || y >= arrowio.DefaultMaxClasses {
				return fmt.Sprintf("label: not from 0 to %d", arrowio.DefaultMaxClasses-1)
			}
			return ""
		})
	}
	for _, s := range c.columns {
		each(s.Values, c.n, mark, func(v string) string {
			if why := textFault(v); why != "" {
				return "slice " + s.Name + ": " + why
			}
			return ""
		})
	}
	return out
}

// each marks the rows of n whose value has a fault. One value is that of all rows.
func each[T any](values []T, n int, mark func(row int, why string), fault func(T) string) {
	for i, v := range values {
		why := fault(v)
		switch {
		case why == "":
		case len(values) == n:
			mark(i, why)
		default:
			for row := range n {
				mark(row, why)
			}
		}
	}
}
