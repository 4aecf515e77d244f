package acc

import (
	"errors"

	"github.com/plumbline/plumbline/internal/binenc"
)

var (
	// ErrShape is for two accumulators of different configuration, or a row of another K. A mistake of the
	// configuration.
	ErrShape = errors.New("different shape")
	// ErrOverflow is for a sum would leave its range; nothing was changed. Close the pane or window earlier.
	ErrOverflow = errors.New("sum overflows")
	// ErrValue is for a row with a value outside its range (NaN included); nothing was changed. Reject the row.
	ErrValue = errors.New("value out of range")
	// ErrCorrupt is for bytes that are no encoding of this type; the receiver is as it was.
	ErrCorrupt = binenc.ErrCorrupt
)
