package slicing

import (
	"encoding/binary"

	"github.com/plumbline/plumbline/arrowio"
)

// Other stands for the values of a column that have no statistics of their own.
const Other = "~other"

// Hash orders the values of a column: 64 bits of XXH3.
func Hash(value string) uint64 {
	id := arrowio.HashID(value)
	return binary.BigEndian.Uint64(id[:8])
}

// Slots is how many values of a column a shard tells apart in one label pane where limit of them are kept: all rows are
// known of each kept value, and of some that may take its place.
func Slots(limit int) int { return 4 * limit }
