package detect

import (
	"errors"

	"github.com/plumbline/plumbline/internal/binenc"
)

var (
	// ErrSpec is for a specification outside its range. A mistake of the configuration.
	ErrSpec = errors.New("invalid detector specification")
	// ErrPane is for sums that no rows can have, or a pane out of order; the detector is as it was.
	ErrPane = errors.New("invalid pane")
	// ErrCorrupt is for bytes that are no state of this detector; the receiver is as it was.
	ErrCorrupt = binenc.ErrCorrupt
)
