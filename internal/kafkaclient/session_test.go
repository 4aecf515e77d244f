package kafkaclient

import (
	"encoding/binary"
	"testing"
)

// TestFrames follows messages that come in pieces of every length, one without a body among them.
func TestFrames(t *testing.T) {
	var stream []byte
	for _, n := range []int{5, 0, 300, 1} {
		stream = binary.BigEndian.AppendUint32(stream, uint32(n)) //nolint:gosec // small
		stream = append(stream, make([]byte, n)...)
	}
	for size := 1; size <= len(stream); size++ {
		var f frames
		ended := int64(0)
		for rest := stream; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			ended += f.take(rest[:min(size, len(rest))])
		}
		if ended != 4 || !f.atStart() {
			t.Fatalf("pieces of %d: %d messages, at the start %v", size, ended, f.atStart())
		}
	}
}
