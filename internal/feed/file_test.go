package feed_test

import (
	"testing"

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
