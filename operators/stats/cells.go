package stats

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// cellTable has the cells of a shard, by key and panes.
type cellTable struct {
	paneClock
	setPool
	acc     acc.Config // of each set; K is the key's
	classes string     // Options.Classes
	keys    keyTable
	cells   map[cellKey]*acc.Set
	late    map[cellKey]*acc.Set // whose label pane has been emitted
	lent    loans                // of them
	last    cachedCell
	buf     []byte // scratch of emit
	most    int    // bytes that the cells may take (Options.CellBytes)
	room    int    // what they may take before they are measured
}

type cellKey struct {
	key                       int32
	labelPane, predictionPane int64
}

// near returns the index in groupTable.near for a cell: consecutive cells of a key have different ones.
func (k *cellKey) near() uint {
	return uint(8*int64(k.key)+3*k.labelPane+k.predictionPane) & (1<<10 - 1)
}

type cachedCell struct {
	key  cellKey
	set  *acc.Set
	late bool
}

// cell returns the set of a cell, making it if needed; late says that its label pane has been emitted.
func (s *cellTable) cell(k cellKey, classes int) (set *acc.Set, late bool, err error) {
	if s.last.set != nil && s.last.key == k {
		return s.last.set, s.last.late, nil
	}
	late = k.labelPane < s.closedOf(s.keys.keys[k.key].model.Model)
	m := s.cells
	if late {
		m = s.late
	}
	set = m[k]
	if set == nil {
		if set = s.take(classes); set != nil {
			s.room -= set.Memory()
		} else {
			cfg := s.acc
			cfg.K = classes
			if set, err = acc.New(cfg); err != nil {
				return nil, false, err
			}
		}
		m[k] = set
		s.room -= newCell(classes)
		if c := s.keys.columns[k.key]; c != nil && c.panes[k.labelPane] != nil {
			p := c.panes[k.labelPane]
			p.has[k.key] = append(p.has[k.key], k.predictionPane)
		}
	}
	s.lent.back(set)
	set.CountClasses(s.countsClasses(k.key))
	s.last = cachedCell{k, set, late}
	return set, late, nil
}

// open returns the cells for rows of a model's label pane: open ones, or late ones if it has been emitted.
func (s *cellTable) open(model string, labelPane int64) map[cellKey]*acc.Set {
	if labelPane < s.closedOf(model) {
		return s.late
	}
	return s.cells
}

// countsClasses reports whether the rows of a key are counted by predicted class.
func (s *cellTable) countsClasses(key int32) bool {
	return s.classes == ClassesSlices || s.classes == ClassesModel && s.keys.names[key] == ""
}

// ready says which cells emit takes.
type ready int

const (
	readyClosed ready = iota // those of closed label panes
	readyLate                // all: they are late
	readyEarly               // all, though their label panes are open
)

// emit moves cells from m to the outbox, in canonical order.
func (s *cellTable) emit(to *pipeline.Outbox, m map[cellKey]*acc.Set, which ready) error {
	var ready []cellKey
	for k := range m {
		if which != readyClosed || k.labelPane < s.closedOf(s.keys.keys[k.key].model.Model) {
			ready = append(ready, k)
		}
	}
	slices.SortFunc(ready, s.compare)
	var cells []pipeline.Cell
	var err error
	for len(ready) > 0 {
		n := 0
		first := s.keys.keys[ready[0].key]
		cells, s.buf = cells[:0], s.buf[:0] // the outbox encodes them at once
		for n < len(ready) && ready[n].labelPane == ready[0].labelPane &&
			s.keys.keys[ready[n].key].model.Model == first.model.Model {
			k := s.keys.keys[ready[n].key]
			set := m[ready[n]]
			s.lent.back(set)
			at := len(s.buf)
			if s.buf, err = set.AppendBinary(s.buf); err != nil {
				return err
			}
			cells = append(cells, pipeline.Cell{
				Version:        k.model.Version,
				Slice:          s.keys.names[ready[n].key],
				K:              k.classes,
				PredictionPane: ready[n].predictionPane,
				Set:            s.buf[at:len(s.buf):len(s.buf)],
			})
			s.recycle(k.classes, set)
			delete(m, ready[n])
			n++
		}
		to.Increment(first.model.Model, ready[0].labelPane, which == readyLate, cells)
		ready = ready[n:]
	}
	if cap(s.buf) > maxPooledBytes { // of a burst
		s.buf = nil
	}
	return nil
}

func (s *cellTable) compare(a, b cellKey) int {
	ka, kb := &s.keys.keys[a.key], &s.keys.keys[b.key]
	return cmp.Or(cmp.Compare(a.labelPane, b.labelPane), ka.model.Compare(kb.model),
		strings.Compare(s.keys.names[a.key], s.keys.names[b.key]), cmp.Compare(a.predictionPane, b.predictionPane),
		cmp.Compare(ka.classes, kb.classes))
}

// compactKeys is the number of keys above which keys without cells are forgotten.
const compactKeys = 4096

// compact forgets the values of emitted panes and, once there are many keys, those without an open cell.
func (s *cellTable) compact() {
	for _, c := range s.keys.byName {
		closed := s.closedOf(c.model.Model)
		maps.DeleteFunc(c.panes, func(pane int64, _ *paneValues) bool { return pane < closed })
	}
	if len(s.keys.keys) < compactKeys {
		return
	}
	used := map[int32]bool{}
	for _, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		for k := range m {
			used[k.key] = true
		}
	}
	if 2*len(used) > len(s.keys.keys) {
		return
	}
	old, renamed := s.keys.keys, map[int32]int32{}
	s.keys.clear()
	for _, key := range slices.Sorted(maps.Keys(used)) {
		renamed[key] = s.keys.add(old[key])
	}
	for _, m := range []*map[cellKey]*acc.Set{&s.cells, &s.late} {
		cells := make(map[cellKey]*acc.Set, len(*m))
		for k, set := range *m {
			k.key = renamed[k.key]
			cells[k] = set
		}
		*m = cells
	}
}
