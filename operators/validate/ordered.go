package validate

import (
	"maps"
	"sync"

	"github.com/plumbline/plumbline/arrowio"
)

// Ordered are the numbers of classes that were settled for all shards: by a person, or by the model task where shards
// have learnt different ones. Safe for concurrent use.
type Ordered struct {
	mu      sync.Mutex
	by      map[arrowio.ModelKey]Order
	changes int
}

// Order is the number of classes of a model version, settled by a person.
type Order struct {
	Classes int
	Origin  string // as in "expected K = 5 as ordered by ann at …"
}

// NewOrdered returns an empty table.
func NewOrdered() *Ordered { return &Ordered{by: map[arrowio.ModelKey]Order{}} }

// Set notes the latest order about a model version.
func (o *Ordered) Set(key arrowio.ModelKey, to Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by[key] != to {
		o.by[key] = to
		o.changes++
	}
}

// Of is the number of classes of a model version; 0 where none was settled.
func (o *Ordered) Of(key arrowio.ModelKey) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.by[key].Classes
}

// since returns all orders where there are others than the caller has seen.
func (o *Ordered) since(seen int) (by map[arrowio.ModelKey]Order, now int) {
	if o == nil {
		return nil, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes == seen {
		return nil, seen
	}
	return maps.Clone(o.by), o.changes
}
