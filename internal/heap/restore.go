package heap

import (
	"runtime/debug"
	"sync"
)

// GrowFactor is by how much less often garbage is collected while tasks restore.
const GrowFactor = 4

// restoring counts the tasks that restore their state now.
var restoring struct {
	mu      sync.Mutex
	tasks   int
	percent int // GOGC as it was
}

// Grows tells the garbage collector that a task restores its state: nearly all that is allocated stays, and a heap that
// begins with nothing would be walked at each doubling. It applies to the whole process until the last task that
// restores calls done; a memory limit (GOMEMLIMIT) holds all the same.
func Grows() (done func()) {
	r := &restoring
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks++; r.tasks == 1 {
		if r.percent = debug.SetGCPercent(-1); r.percent >= 0 { // there is no other way to ask
			debug.SetGCPercent(GrowFactor * r.percent)
		}
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.tasks--; r.tasks == 0 {
			debug.SetGCPercent(r.percent)
		}
	})
}
