package pair

import (
	"cmp"
	"container/heap"
)

// queue is a heap of what waits, the oldest by event time first.
type queue []*entry

func (e *entry) before(other *entry) bool {
	return cmp.Or(cmp.Compare(e.ts, other.ts), cmp.Compare(e.seq, other.seq)) < 0
}

func (q queue) first() *entry {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

var _ heap.Interface = (*queue)(nil)

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(e any) {
	e.(*entry).place = len(*q)
	*q = append(*q, e.(*entry))
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
