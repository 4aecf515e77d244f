package stage

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Stage is one stage of the model task. One goroutine calls it.
type Stage interface {
	// NewKey returns what the stage keeps of a key, or nil where it keeps nothing of this one.
	NewKey(k *Key) KeyState
	// Close ends a label pane of a version, after all of its keys have observed it.
	Close(c *Closing) error
}

// KeyState is what a stage keeps of one key.
type KeyState interface {
	// Observe takes the next label pane. It may keep the sums of the pane's cells only by merging them into its own.
	Observe(in *Pane) error
	// Open reports whether label panes without rows matter: a window by time has rows, sums wait until they are old
	// enough.
	Open() bool
	// Merge takes over the statistics of the same stage of a slice that is pooled from now on.
	Merge(o KeyState) error
	// AppendState appends the state: one version byte, then bytes that are equal for equal states.
	AppendState(dst []byte) ([]byte, error)
	// RestoreState reads all of r. What the configuration does not have any more it leaves out; alerts of that go to
	// Key.Ended.
	RestoreState(r *binenc.Reader, d *acc.Decoder) error
}

// Closing is a label pane of a version at its end.
type Closing struct {
	Version    *Version
	Index, End int64    // of the pane: index, and end in event time
	Keys       []Closed // slices in the order of their names, then the whole
}

// Closed is one key of a version with the pane that it observed, and what the stage at hand keeps of it (nil =
// nothing).
type Closed struct {
	*Key
	Pane  *Pane
	State KeyState
}
