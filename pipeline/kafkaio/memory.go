package kafkaio

import (
	"slices"
	"sync"

	"github.com/plumbline/plumbline/pipeline"
)

// part is records that follow each other, with the memory that nothing but they and those before them lie in.
type part struct {
	records []pipeline.Record
	memory  [][]byte
}

// memory is what a fetcher reads answers into: that of records that were taken serves the next ones. Memory that a
// process has not touched before costs it a page fault for each 4 KiB, which is more than the copy from the socket.
// The zero value is ready; any goroutine may call its methods.
type memory struct {
	mu    sync.Mutex
	free  [][]byte // the one that was done first comes first
	parts []*part
}

// What is kept. There is never more of it than was on its way at once.
const (
	keptParts = fetchQueue + 3
	keptBytes = 64 // pieces
	generous  = 4  // times what is asked for
	leastKept = 64 << 10
	rounded   = 4 << 10
)

// bytes returns n bytes of any content. Where no piece fits, the oldest is let go: a burst does not stay in memory.
func (m *memory) bytes(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.free) - 1; i >= 0; i-- {
		if c := cap(m.free[i]); c >= n && c <= max(generous*n, leastKept) {
			b := m.free[i][:n]
			m.free = slices.Delete(m.free, i, i+1)
			return b
		}
	}
	if len(m.free) > 0 {
		m.free = slices.Delete(m.free, 0, 1)
	}
	return make([]byte, n, (n+rounded-1)&^(rounded-1))
}

// another returns a part without records.
func (m *memory) another() *part {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.parts) - 1
	if last < 0 {
		return new(part)
	}
	p := m.parts[last]
	m.parts = m.parts[:last]
	return p
}

// done takes back a part and its memory: nobody looks at its records any more. nil is none.
func (m *memory) done(p *part) {
	if p == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range p.memory {
		if len(m.free) < keptBytes {
			m.free = append(m.free, b)
		}
	}
	few := generous*len(p.records) < cap(p.records)
	clear(p.records) // what they refer to is free
	clear(p.memory)
	p.records, p.memory = p.records[:0], p.memory[:0]
	if !few && len(m.parts) < keptParts {
		m.parts = append(m.parts, p)
	}
}

// idle lets go of everything: an answer was empty.
func (m *memory) idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free, m.parts = nil, nil
}
