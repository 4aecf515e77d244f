package stats

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
)

// If a label pane has more values of a column than there are slots, the values with the lowest hashes get the slots,
// and the rest are pooled. The choice depends on the rows only, not on their order: the bound on hashes only falls, so
// a value that has a slot in the end had it from its first row on, and its sums have all of its rows. Shards need not
// talk to each other: the lowest hashes of all shards are among the lowest of each.

// paneValues has the values of a column that have slots in a label pane. The heap has the one with the highest hash
// first.
type paneValues struct {
	table *keyTable
	has   map[int32][]int64 // prediction panes by key
	heap  []slot
}

type slot struct {
	hash uint64
	key  int32
}

func (p *paneValues) compare(hash uint64, value string, b slot) int {
	return cmp.Or(cmp.Compare(hash, b.hash), cmp.Compare(value, p.table.keys[b.key].value))
}

// Len implements heap.Interface.
func (p *paneValues) Len() int { return len(p.heap) }

// Less implements heap.Interface.
func (p *paneValues) Less(i, j int) bool {
	return p.compare(p.heap[i].hash, p.table.keys[p.heap[i].key].value, p.heap[j]) > 0
}

// Swap implements heap.Interface.
func (p *paneValues) Swap(i, j int) { p.heap[i], p.heap[j] = p.heap[j], p.heap[i] }

// Push implements heap.Interface.
func (p *paneValues) Push(x any) { p.heap = append(p.heap, x.(slot)) }

// Pop implements heap.Interface.
func (p *paneValues) Pop() any {
	last := p.heap[len(p.heap)-1]
	p.heap = p.heap[:len(p.heap)-1]
	return last
}

// valuesOf returns the values of a label pane; at first it collects them from the pane's cells.
func (s *cellTable) valuesOf(c *sliceColumn, labelPane int64) *paneValues {
	p := c.panes[labelPane]
	if p != nil {
		return p
	}
	p = &paneValues{table: &s.keys, has: map[int32][]int64{}}
	for k := range s.open(c.model.Model, labelPane) {
		if k.labelPane == labelPane && s.keys.columns[k.key] == c {
			p.has[k.key] = append(p.has[k.key], k.predictionPane)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.has)) {
		p.heap = append(p.heap, slot{slicing.Hash(s.keys.keys[key].value), key})
	}
	heap.Init(p)
	c.panes[labelPane] = p
	return p
}

// admit returns the key under which a row counts in a label pane, for a column with many values: the value's own key
// if it has or gets a slot, else that of ~other (pooled). key is the value's key, -1 if it has none.
func (s *Operator) admit(c *sliceColumn, value string, key int32, labelPane int64) (as int32, pooled bool, err error) {
	if key < 0 {
		if i, ok := s.keys.ix[sliceKey{c.model, c.column, value, c.classes}]; ok { // another label pane had a slot
			key = i
		}
	}
	p := s.valuesOf(c, labelPane)
	if _, ok := p.has[key]; ok {
		return key, false, nil
	}
	hash := slicing.Hash(value)
	for len(p.heap) >= s.keys.slots {
		if p.compare(hash, value, p.heap[0]) > 0 {
			return s.keys.other(c), true, nil
		}
		// The rows of the block at hand that are sorted by cell may be those of the value that is pooled.
		if err := s.addTo(s.block); err != nil {
			return 0, false, err
		}
		rows, err := s.evict(c, p, labelPane)
		if err != nil {
			return 0, false, err
		}
		if rows > 0 {
			s.counts.Add(pipeline.CountPooled, rows)
		}
	}
	if key < 0 {
		key = s.keys.add(sliceKey{c.model, c.column, value, c.classes})
	}
	p.has[key] = nil
	heap.Push(p, slot{hash, key})
	return key, false, nil
}

// countPooled counts a prediction or labelled row whose value has no slot.
func (s *Operator) countPooled(pooled bool) {
	if pooled {
		s.counts.Add(pipeline.CountPooled, 1)
	}
}

// evict pools the value with the highest hash in a label pane. It returns how many of its rows were counted.
func (s *cellTable) evict(c *sliceColumn, p *paneValues, labelPane int64) (rows int64, err error) {
	s.last = cachedCell{}
	key := heap.Pop(p).(slot).key
	cells, other := s.open(c.model.Model, labelPane), s.keys.other(c)
	for _, pane := range p.has[key] {
		k := cellKey{key, labelPane, pane}
		set := cells[k]
		if set == nil {
			continue
		}
		dst, _, err := s.cell(cellKey{other, labelPane, pane}, c.classes)
		if err != nil {
			return rows, err
		}
		s.lent.back(set)
		if err := dst.Merge(set); err != nil {
			return rows, err
		}
		seen, _ := set.SeenRows()
		rows += seen + set.LabelledRows()
		delete(cells, k)
		s.recycle(c.classes, set)
	}
	delete(p.has, key)
	return rows, nil
}
