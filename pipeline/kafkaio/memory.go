package kafkaio

import (
	"slices"
	"sync"

	"github.com/plumbline/plumbline/pipeline"
)

// part is a run of records, with memory that only they and earlier records use.
type part struct {
	records []pipeline.Record
	memory  [][]byte
}

// memory is what a fetcher reads answers into. It is reused once the records in it were taken: memory that a process
// has not touched before costs a page fault for each 4 KiB, which is more than the copy from the socket. The zero
// value is ready; any goroutine may call its methods.
type memory struct {
	mu      sync.Mutex
	answers uint64
	free    []piece
	parts   []*part
}

// piece is free memory, and the number of the answer at which it became free. The list has the longest free first.
type piece struct {
	b     []byte
	since uint64
}

// Bounds of free memory. There is never more of it than was in use at once.
const (
	keptParts  = fetchQueue + 3
	keptPieces = 64
	keptFor    = 64 // answers; then memory of a burst is freed
	generous   = 4  // a buffer may be so many times larger than what is asked for
	leastKept  = 64 << 10
	rounded    = 4 << 10
)

// forAnswer returns n bytes of any content for the next answer, and frees buffers unused for 64 answers (keptFor).
func (m *memory) forAnswer(n int) []byte {
	m.age()
	return m.bytes(n)
}

func (m *memory) age() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers++
	old := 0
	for old < len(m.free) && m.free[old].since+keptFor < m.answers {
		old++
	}
	m.free = slices.Delete(m.free, 0, old)
}

// bytes returns n bytes of any content.
func (m *memory) bytes(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.free) - 1; i >= 0; i-- {
		b := m.free[i].b
		if c := cap(b); c >= n && c <= max(generous*n, leastKept) {
			m.free = slices.Delete(m.free, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n, (n+rounded-1)&^(rounded-1))
}

// another returns an empty part.
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

// done takes back a part and its memory, when nobody uses its records any more. nil is no part.
func (m *memory) done(p *part) {
	if p == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range p.memory {
		if len(m.free) < keptPieces {
			m.free = append(m.free, piece{b, m.answers})
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

// idle frees everything; it is called when an answer was empty.
func (m *memory) idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free, m.parts = nil, nil
}
