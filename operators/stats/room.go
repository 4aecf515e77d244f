package stats

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// A shard's cells are as many as the panes that its rows name, and the writer of the rows chooses these: a message of a
// few bytes a row can have each row in a cell of its own. So once the cells take more than a bound, all of them go out,
// those of open label panes too. Model tasks add what comes for a label pane until it is closed, so a cell in two
// increments is what it is where two shards have a part of its rows each: no sum and no choice of slices differs. Which
// rows are in which part may differ after a restart.

// maxCellBytes is the default of Options.CellBytes.
const maxCellBytes = 256 << 20

// newCell and newRows bound what cells of K classes grow by: each new one, whose tables begin with 32 entries, and rows
// of one, whose scores may be sampled. Tables double.
func newCell(classes int) int { return 6<<10 + 32*classes }

func newRows(rows, classes int) int { return rows * (1<<10 + 16*classes) }

// relieve emits all cells if they may take too much. What they have grown by since they were measured is estimated from
// above, for free; only when that has used up the room they are measured again. They are too many if there is hardly
// room for more, or they would be measured too often.
func (s *cellTable) relieve(to *pipeline.Outbox) error {
	if s.room > 0 {
		return nil
	}
	if s.room = s.most - s.held(); s.room > s.most/8 {
		return nil
	}
	s.last = cachedCell{}
	if err := s.emit(to, s.late, readyLate); err != nil {
		return err
	}
	if err := s.emit(to, s.cells, readyEarly); err != nil {
		return err
	}
	for _, c := range s.keys.byName {
		clear(c.panes) // as in a shard without rows
	}
	s.compact()
	s.room = s.most - s.held()
	return nil
}

// held returns the memory of the cells, and of the keys that they made.
func (s *cellTable) held() int {
	n := s.keys.bytes
	for _, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		for _, set := range m {
			s.lent.back(set)
			n += cellBytes + set.Memory()
		}
	}
	for _, c := range s.keys.byName {
		n += len(c.panes) * paneBytes
	}
	return n
}

// Memory beside sets: of a cell, of a key without its text, and of the values of a label pane.
const (
	cellBytes = 64
	keyBytes  = 256
	paneBytes = 1 << 10
)
