package feed_test

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
)

func TestDefaultModel(t *testing.T) {
	for _, c := range []struct{ file, array, want string }{
		{"/data/nets.npz:resnet20", "", "nets-resnet20"},
		{"nets.npz", "vgg", "nets-vgg"},
		{"dir.d/monday.parquet", "", "monday"},
	} {
		if got := feed.DefaultModel(c.file, c.array); got != c.want {
			t.Errorf("%s, %q: got %s, want %s", c.file, c.array, got, c.want)
		}
	}
}

// TestFlushEvery: rows wait less long than shards wait for them, and by the clock a second at most.
func TestFlushEvery(t *testing.T) {
	for _, c := range []struct {
		lateness time.Duration
		paced    bool
		want     time.Duration
	}{
		{0, false, time.Second},
		{10 * time.Second, true, time.Second},
		{10 * time.Second, false, 5 * time.Second},
		{100 * time.Millisecond, true, 100 * time.Millisecond},
		{100 * time.Millisecond, false, 100 * time.Millisecond},
		{time.Second, false, time.Second},
	} {
		if got := feed.FlushEvery(c.lateness, c.paced); got != c.want {
			t.Errorf("FlushEvery(%v, %v) = %v, want %v", c.lateness, c.paced, got, c.want)
		}
	}
}
