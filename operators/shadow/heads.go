package shadow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// HeadModel is a classifier head. Rows are computed one by one, so that logits do not depend on how rows are batched.
// Safe for concurrent use.
type HeadModel interface {
	Features() int
	Classes() int
	// Logits writes the K logits of one row of D features.
	Logits(z, x []float32)
}

// Heads holds the heads that shards run as shadows, by model version. It is filled from the compacted heads topic and
// read by every shard.
type Heads struct {
	most    int // running at a time, of a version
	mu      sync.RWMutex
	by      map[arrowio.ModelKey][]*headEntry
	changes atomic.Int64
}

// headEntry is immutable in a list.
type headEntry struct {
	key         arrowio.ModelKey // of the serving version
	number      int
	from, until pipeline.Time // event times; math.MaxInt64 = for ever
	model       HeadModel
}

func (h *headEntry) version() string { return record.ShadowVersion(h.key.Version, h.number) }

// NewHeads returns an empty table.
func NewHeads(cfg proving.Config) *Heads {
	return &Heads{most: cfg.Max, by: map[arrowio.ModelKey][]*headEntry{}}
}

// Put adds a head that runs on rows with an event time from from on. A number that is there already stays as it is: the
// first result of a request counts.
func (h *Heads) Put(m arrowio.ModelKey, number int, from pipeline.Time, model HeadModel) error {
	if number < 1 || model.Features() < 1 || model.Classes() < 2 {
		return fmt.Errorf("head %d of %s/%s with %d features and %d classes: allowed from 1, 1 and 2", number,
			m.Model, m.Version, model.Features(), model.Classes())
	}
	h.change(m, number, func(old *headEntry) *headEntry {
		until := pipeline.Time(math.MaxInt64)
		if old != nil {
			if old.model != nil {
				return old
			}
			until = old.until
		}
		return &headEntry{key: m, number: number, from: from, until: until, model: model}
	})
	return nil
}

// Stop ends a head before rows with an event time from until on; it may come before Put.
func (h *Heads) Stop(m arrowio.ModelKey, number int, until pipeline.Time) {
	h.change(m, number, func(old *headEntry) *headEntry {
		s := headEntry{key: m, number: number, until: until}
		if old != nil {
			s.from, s.model = old.from, old.model
		}
		return &s
	})
}

// change replaces an entry. Readers hold no lock while they use a list: it is replaced, never edited in place.
func (h *Heads) change(m arrowio.ModelKey, number int, f func(old *headEntry) *headEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.by[m])
	i, found := slices.BinarySearchFunc(list, number, func(s *headEntry, n int) int { return cmp.Compare(s.number, n) })
	if found {
		list[i] = f(list[i])
	} else {
		list = slices.Insert(list, i, f(nil))
	}
	h.by[m] = list
	h.changes.Add(1)
}

// of returns the heads of a version by number, those without weights included.
func (h *Heads) of(m arrowio.ModelKey) []*headEntry {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.by[m]
}

// all returns every head, by model, version and number.
func (h *Heads) all() []*headEntry {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []*headEntry
	for _, list := range h.by {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b *headEntry) int {
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.number, b.number))
	})
	return out
}

// Has reports whether a head's weights are there.
func (h *Heads) Has(m arrowio.ModelKey, number int) bool {
	for _, s := range h.of(m) {
		if s.number == number {
			return s.model != nil
		}
	}
	return false
}
