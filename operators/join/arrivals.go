package join

// arrivals lists the entries in order of arrival. An entry that leaves leaves a gap, so no other entry moves.
type arrivals struct {
	order []int32 // -1 = a gap
	front int     // index in order; all before it are gaps
	base  uint32  // entry.at of the first element of order
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

// depart replaces an entry, given its place, by a gap.
func (a *arrivals) depart(place uint32) {
	at := int(place - a.base)
	if a.order[at] = -1; at != a.front {
		return
	}
	for a.front++; a.front < len(a.order) && a.order[a.front] < 0; {
		a.front++
	}
}

// closeGaps makes room when at least half of the order is gaps. If these are at the front, it touches no entry. It
// moves no more entries than have arrived since it last did.
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

// oldest returns the entry that came first, -1 if there is none.
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
