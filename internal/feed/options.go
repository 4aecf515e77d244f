package feed

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

// Defaults of [Options], where the field is zero.
const (
	DefaultEventRate  = 1000
	DefaultBatch      = 1000
	DefaultFlushEvery = time.Second
	DefaultPane       = 10 * time.Second
	DefaultIDPrefix   = "row"
)

// Options say how rows become messages. Zero values mean the documented default.
type Options struct {
	// Model and Version replace those of the sources where they are not "".
	Model, Version string

	Partitions int // of both topics; default 1

	// EventRate is rows per second of event time: row i has the time Start + i/EventRate. Where it is 0, the
	// sources' own times are taken; if they have none, it is DefaultEventRate.
	EventRate float64
	Start     arrowio.Time

	// DelayMin and DelayMax bound the time from a row to its label: uniform by a hash of Seed and the row's number.
	DelayMin, DelayMax time.Duration

	// NoLabels leaves the labels stream out; InlineLabels too, and sends the labels in the logits messages.
	NoLabels, InlineLabels bool

	Batch int // rows a message; default DefaultBatch

	// MessageBytes bounds the scores and features of a message, so that rows of many classes are sent in messages
	// that are taken; a row that is larger by itself is sent all the same. 0 = no bound.
	MessageBytes int

	// FlushEvery bounds how long, in event time, a row waits for its message to fill; default DefaultFlushEvery.
	// Without it a row could arrive behind a watermark that its own messages raised elsewhere.
	FlushEvery time.Duration

	Seed uint64

	// Skip passes over the first rows and Limit ends after so many more (0 = all). Skipped rows keep their numbers,
	// times and ids, so that a stream sent in two parts is the stream sent in one.
	Skip, Limit int64

	IDPrefix string // of the ids of rows that have none; default DefaultIDPrefix

	// End closes the stream with a control message on every partition: an empty value and the header
	// WatermarkHeader, at the end of the pane that holds the last event.
	End  bool
	Pane time.Duration // default DefaultPane
}

// withDefaults returns o with the defaults filled in, or the first error.
func (o Options) withDefaults() (Options, error) {
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = DefaultFlushEvery
	}
	if o.Pane == 0 {
		o.Pane = DefaultPane
	}
	if o.IDPrefix == "" {
		o.IDPrefix = DefaultIDPrefix
	}
	return o, o.validate()
}

func (o Options) validate() error {
	switch {
	case o.Partitions < 1:
		return fmt.Errorf("partitions %d: must be at least 1", o.Partitions)
	case !(o.EventRate >= 0) || o.EventRate > 1e9:
		return fmt.Errorf("event rate %v: must be in [0, 1e9] rows per second", o.EventRate)
	case o.DelayMin < 0:
		return fmt.Errorf("label delay %v: must not be negative", o.DelayMin)
	case o.DelayMax < o.DelayMin:
		return fmt.Errorf("maximum label delay %v: must be at least the minimum, %v", o.DelayMax, o.DelayMin)
	case o.Batch < 1:
		return fmt.Errorf("batch %d: must be at least 1 row", o.Batch)
	case o.FlushEvery < 0:
		return fmt.Errorf("flush interval %v: must be positive", o.FlushEvery)
	case o.Pane < 0:
		return fmt.Errorf("pane %v: must be positive", o.Pane)
	case o.Skip < 0:
		return fmt.Errorf("skip %d: must not be negative", o.Skip)
	case o.Limit < 0:
		return fmt.Errorf("limit %d: must not be negative", o.Limit)
	}
	return nil
}

// RowTime returns the event time of row i at the rate of o (DefaultEventRate where it is 0).
func (o Options) RowTime(i int64) arrowio.Time {
	rate := o.EventRate
	if rate == 0 {
		rate = DefaultEventRate
	}
	return o.Start + arrowio.Time(float64(i)*(1e9/rate))
}

// labelDelay is uniform over the nanoseconds of [DelayMin, DelayMax].
func (o Options) labelDelay(i int64) arrowio.Time {
	span := uint64(o.DelayMax-o.DelayMin) + 1
	hi, _ := bits.Mul64(splitmix(o.Seed, uint64(i)), span)
	return arrowio.Time(o.DelayMin) + arrowio.Time(hi)
}
