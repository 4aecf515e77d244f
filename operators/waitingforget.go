package operators

// forgetting bounds the joined predictions that are remembered, so that a repeat of one is known for what it is, and a
// second label for it too. Everything that came before the mark is not remembered: the mark moves on when they are too
// many, and never back, so what is remembered is what joined of the latest arrivals.
//
// Invariant: the mark is on disk while markRow < store.Next(); then mark is the oldest entry in memory.
type forgetting struct {
	mark    int32  // first entry in memory after the mark; -1 = none
	markRow uint64 // first row on disk after the mark
}

// afterMark reports whether an entry would be remembered.
func (w *waiting) afterMark(p *entry) bool {
	switch {
	case p.onDisk:
		return p.number >= w.markRow
	case w.store != nil && w.markRow < w.store.Next():
		return true
	default:
		return w.mark >= 0 && p.number >= w.entries[w.mark].number
	}
}

// join notes that a prediction has joined.
func (w *waiting) join(e int32) {
	p := &w.entries[e]
	if w.cfg.Remember == 0 || !w.afterMark(p) {
		w.remove(e)
		return
	}
	p.used = true
	w.n.predictions--
	w.n.joined++
	if p.onDisk {
		w.store.SetState(p.number, stateJoined)
		return
	}
	w.dropScores(p)
	p.k, p.d = 0, 0
}

// forget moves the mark on until no more joined predictions are remembered than may be.
func (w *waiting) forget() error {
	for w.n.joined > w.cfg.Remember {
		if w.store != nil && w.markRow < w.store.Next() {
			if err := w.forgetOnDisk(); err != nil {
				return err
			}
			continue
		}
		e := w.mark
		if e < 0 {
			panic("operators: more is remembered than there is")
		}
		w.mark = w.entries[e].next
		if w.entries[e].joined() {
			w.remove(e)
		}
	}
	return nil
}

func (w *waiting) forgetOnDisk() error {
	n, ok := w.store.After(w.markRow, isJoined)
	if !ok {
		w.markRow = w.store.Next()
		return nil
	}
	row, err := w.store.Read(n)
	if err != nil {
		return err
	}
	w.markRow = n + 1
	w.removeRow(n, row.ID, false, true)
	return nil
}
