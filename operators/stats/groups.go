package stats

import "github.com/plumbline/plumbline/calib/acc"

// groupTable sorts the rows of the current block by cell.
type groupTable struct {
	groups []group
	byCell map[cellKey]int // index into groups
	near   [1 << 10]int32  // by cellKey.near, the group found last
}

// group is the rows of the current block that belong to one cell.
type group struct {
	key  cellKey
	set  *acc.Set
	late bool
	// Rows to count as predictions, as labelled rows, or as both.
	predict, labels, both []int32
}

// find returns the group of a cell and its index in groups; nil if there is none.
func (t *groupTable) find(k cellKey) (*group, int) {
	near := &t.near[k.near()]
	if i := int(*near); i < len(t.groups) && t.groups[i].key == k {
		return &t.groups[i], i
	}
	i, ok := t.byCell[k]
	if !ok {
		return nil, 0
	}
	*near = int32(i)
	return &t.groups[i], i
}

// add makes the group of a cell that has none.
func (t *groupTable) add(k cellKey) (*group, int) {
	n := len(t.groups)
	t.byCell[k], t.near[k.near()] = n, int32(n)
	if n == cap(t.groups) {
		t.groups = append(t.groups, group{})
	}
	t.groups = t.groups[:n+1]
	t.groups[n].key = k
	return &t.groups[n], n
}

// addTo adds the rows to their cells.
func (t *groupTable) addTo(block *acc.Block) error {
	for g := range t.groups {
		g := &t.groups[g]
		if len(g.predict) > 0 {
			if err := g.set.PredictRows(block, g.predict); err != nil {
				return err
			}
		}
		if len(g.labels) > 0 {
			if err := g.set.LabelRows(block, g.labels); err != nil {
				return err
			}
		}
		if len(g.both) > 0 {
			if err := g.set.BothRows(block, g.both); err != nil {
				return err
			}
		}
		g.set, g.predict, g.labels, g.both = nil, g.predict[:0], g.labels[:0], g.both[:0]
	}
	t.groups = t.groups[:0]
	clear(t.byCell)
	return nil
}
