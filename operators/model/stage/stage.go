package stage

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Stage is one stage of the model task. One goroutine calls all methods.
type Stage interface {
	// NewKey returns the state that the stage keeps for a key, or nil if it keeps none.
	NewKey(k *Key) KeyState
	// Close ends a label pane of a version. The task calls it after all keys of the version have observed the pane.
	Close(c *Closing) error
}

// KeyState is the state that a stage keeps for one key.
type KeyState interface {
	// Observe takes the next label pane. It must not keep the sets of the pane's cells; it merges them into its own.
	// Of a shadow version nothing is tested: it has no alerts.
	Observe(in *Pane) error
	// Open reports whether label panes without rows matter to this state. They do while a time window has rows, or
	// while sums wait to become old enough.
	Open() bool
	// Merge adds the statistics of the same stage of another slice, which is pooled from now on.
	Merge(o KeyState) error
	// AppendState appends the state. Equal states give equal bytes. The version of the task's section covers it.
	AppendState(dst []byte) ([]byte, error)
	// RestoreState reads all of r. It drops what is no longer configured, and adds the alerts of that to Key.Ended.
	RestoreState(r *binenc.Reader, d *acc.Decoder) error
}

// Closing is a label pane of a version that ends.
type Closing struct {
	Index, End int64    // index of the pane, and its end in event time
	Keys       []Closed // slices in the order of their names, then the whole version
}

// Closed is one key of a version, and the state that the current stage keeps for it (nil = none).
type Closed struct {
	*Key
	State KeyState
}
