package heap

import (
	"os"
	"runtime/debug"

	"github.com/plumbline/plumbline/trainer/data"
)

// garbage is how much memory may wait to be collected beside large features: Go's own rule allows as much as is in use.
const garbage = 256 << 20

// Bound collects more often where the features are large, which costs little: they hold no pointers. GOGC, where
// it is set, is left alone. The returned function takes it back.
func Bound(s *data.Set) (undo func()) {
	size := 4*len(s.X) + 2*len(s.Half)
	if s.Stored != nil {
		size = data.DefaultCache
	}
	if _, set := os.LookupEnv("GOGC"); set || size <= garbage {
		return func() {}
	}
	const least = 2
	before := debug.SetGCPercent(max(least, 100*garbage/size))
	return func() { debug.SetGCPercent(before) }
}
