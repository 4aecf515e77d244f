package embedded

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestHostileRecords: records whose lengths lie are an error; compaction reads what any process of this machine sent.
func TestHostileRecords(t *testing.T) {
	key := []byte("k")
	for _, length := range []int32{-1 << 31, -2, 1 << 20, 1<<31 - 1} {
		raw := (&kmsg.Record{Length: length, Key: key}).AppendTo(nil)
		b := kmsg.RecordBatch{Magic: 2, NumRecords: 2, Records: append(raw, raw...)}
		if keys, err := keysOf(b.AppendTo(nil)); err == nil {
			t.Errorf("a record of length %d: keys %q", length, keys)
		}
	}
}
