package feed

import "github.com/plumbline/plumbline/arrowio"

// label is one label on its way.
type label struct {
	time      arrowio.Time
	row       int64 // breaks ties, so that the order is total
	id        string
	class     int32
	partition int32
	source    int // whose model and version it has, unless rows name theirs
	model     string
	version   string
}

func (a *label) before(b *label) bool {
	return a.time < b.time || a.time == b.time && a.row < b.row
}

// labelQueue is a binary heap of the labels that wait for their time: as many as rows fall into the longest delay.
type labelQueue []label

func (q *labelQueue) push(l label) {
	*q = append(*q, l)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *labelQueue) pop() label {
	h := *q
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = label{}
	*q = h[:last]
	q.down()
	return top
}

func (q *labelQueue) down() {
	h := *q
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
