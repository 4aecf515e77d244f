package join

// arrivals is the entries in order of arrival. One that leaves leaves a gap, so that it touches no other entry.
type arrivals struct {
	order []int32 // -1 = a gap
	front int     // of order: before it are gaps
	base  uint32  // what entry.at of the first is
}

// arrive makes an entry the newest.
func arrive(w *memory, e int32) {
	if len(w.order) == cap(w.order) {
		closeGaps(w)
	}
	w.entries[e].at = w.base + uint32(len(w.order))
	w.order = append(w.order, e)
}

// arriveRun makes the entries of the run the newest, and returns entry.at of the first.
func arriveRun(w *memory) uint32 {
	if len(w.order)+len(w.run) > cap(w.order) {
		closeGaps(w)
	}
	at := w.base + uint32(len(w.order))
	w.order = append(w.order, w.run...)
	return at
}

// depart leaves a gap for an entry, given its place.
func (a *arrivals) depart(place uint32) {
	at := int(place - a.base)
	if a.order[at] = -1; at != a.front {
		return
	}
	for a.front++; a.front < len(a.order) && a.order[a.front] < 0; {
		a.front++
	}
}

// closeGaps makes room where most of the order is gaps: without a look at the entries where most are at the front. No
// more entries are moved than have arrived since it was done last.
func closeGaps(w *memory) {
	switch n := len(w.order); {
	case 2*w.front > n:
		w.base += uint32(w.front)
		w.order = w.order[:copy(w.order, w.order[w.front:])]
	case 2*w.live <= n:
		to := 0
		for _, e := range w.order[w.front:] {
			if e >= 0 {
				w.entries[e].at = w.base + uint32(to)
				w.order[to] = e
				to++
			}
		}
		w.order = w.order[:to]
	default:
		return
	}
	w.front = 0
}

// oldest is the entry that came first, -1 where there is none.
func (a *arrivals) oldest() int32 {
	if a.front == len(a.order) {
		return -1
	}
	return a.order[a.front]
}

// inOrder yields the entries, the oldest first. None may come or leave meanwhile.
func (a *arrivals) inOrder(yield func(e int32) bool) {
	for _, e := range a.order[a.front:] {
		if e >= 0 && !yield(e) {
			return
		}
	}
}
