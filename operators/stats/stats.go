package stats

import (
	"cmp"
	"context"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
)

// Options configures the operator.
type Options struct {
	Acc     acc.Config    // K is set by model
	Pane    int64         // pane length, ns
	Turns   slicing.Turns // of slices
	MaxKeys int           // values of a slice column that model tasks keep; 0 = all
	Classes string        // whose rows are counted by predicted class: ClassesNone or "", ClassesModel, ClassesSlices
	// CellBytes is about the most memory of the cells; 0 = 256 MiB. Beyond it they go out early.
	CellBytes int
}

// Operator keeps one accumulator set per cell (key, label pane, prediction pane) and hands a label pane's cells to the
// outbox when the watermark passes its end: once, never revised. If cells take too much memory, all that are there go
// out before (room.go). Every prediction counts in the cell (pane of ts, pane of ts) as seen, every labelled row in
// (pane of label ts, pane of ts) as labelled. For slices, Turns merges some of these panes.
type Operator struct {
	cfg    Options
	outbox *pipeline.Outbox
	counts *pipeline.Counts
	cellTable
	groupTable
	z []float32 // scratch of sampleScores

	blocks map[int]*acc.Block // by K
	block  *acc.Block         // the current one
	scan   scan

	labelled int64                      // rows of the current batch
	lateBy   map[arrowio.ModelKey]int64 // the late ones among them
}

// New returns the operator.
func New(cfg Options, h pipeline.Host) *Operator {
	s := &Operator{
		cfg:    cfg,
		outbox: h.Outbox,
		counts: h.Counts,
		cellTable: cellTable{
			paneClock: paneClock{clocks: h.Clocks, closed: math.MinInt64},
			setPool:   setPool{pool: map[int][]*acc.Set{}},
			acc:       cfg.Acc,
			classes:   cfg.Classes,
			keys:      newKeyTable(cfg.MaxKeys),
			cells:     map[cellKey]*acc.Set{},
			late:      map[cellKey]*acc.Set{},
			most:      cmp.Or(cfg.CellBytes, maxCellBytes),
		},
		groupTable: groupTable{byCell: map[cellKey]int{}},
		blocks:     map[int]*acc.Block{},
		lateBy:     map[arrowio.ModelKey]int64{},
	}
	s.scan.s = s
	return s
}

// Stage is the operator as a shard registers it.
func (s *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "stats", Operator: s, Version: 2, Reopen: s.reopen}
}

// reopen reopens label panes that were emitted (pipeline.Stage). Their new rows are emitted in addition.
func (s *Operator) reopen(wm pipeline.Time) {
	at := int64(math.MinInt64)
	if wm != pipeline.NoTime {
		at = pipeline.PaneIndex(wm, s.cfg.Pane)
	}
	s.closed = min(s.closed, at)
}

// Process implements pipeline.Operator; batches pass on unchanged.
func (s *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	if b.Kind == arrowio.Labels {
		return emit(b)
	}
	step := acc.BlockRows(b.K)
	for at := 0; at < b.N; at += step {
		if err := s.addBlock(b, at, min(at+step, b.N)); err != nil {
			return b.Reject, err
		}
	}
	if !b.Shadow {
		s.counts.Add(pipeline.CountLabelled, s.labelled)
	}
	s.labelled = 0
	if len(s.lateBy) > 0 {
		s.counts.AddModels(pipeline.CountLateByModel, s.lateBy)
		clear(s.lateBy)
	}
	return emit(b)
}

// Advance implements pipeline.Operator: it emits the cells of label panes that end at or before wm, and the late cells
// gathered since the last call.
func (s *Operator) Advance(_ context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	closed := pipeline.PaneIndex(wm, s.cfg.Pane)
	if closed <= s.closed && s.clocks == nil {
		return nil
	}
	s.last = cachedCell{}
	if err := s.emit(s.outbox, s.late, readyLate); err != nil {
		return err
	}
	s.closed = max(s.closed, closed)
	if err := s.emit(s.outbox, s.cells, readyClosed); err != nil {
		return err
	}
	s.compact()
	return nil
}

// maxBlocks bounds the numbers of classes for which a block is kept: one has about a megabyte, and the writers of
// rows choose how many there are.
const maxBlocks = 32

// addBlock counts the rows in [from, end): it scores them, prepares each, sorts them by cell, and adds them cell by
// cell.
func (s *Operator) addBlock(b *arrowio.Batch, from, end int) error {
	block := s.blocks[b.K]
	if block == nil {
		if len(s.blocks) >= maxBlocks {
			clear(s.blocks)
		}
		block = acc.NewBlock(b.K)
		s.blocks[b.K] = block
	}
	s.block = block
	block.Score(b.Scores[from*b.K:end*b.K], b.Probs)
	if err := s.scan.rows(b, block, from, end); err != nil {
		return err
	}
	s.observe(newest{})
	if err := s.addTo(block); err != nil {
		return err
	}
	s.room -= newRows((end-from)*(1+len(b.Slices)), b.K)
	return s.relieve(s.outbox)
}

// groupOf returns the group of a cell and its index in groups, making it if needed.
func (s *Operator) groupOf(k cellKey, classes int) (g *group, at int, err error) {
	if g, at = s.find(k); g != nil {
		return g, at, nil
	}
	set, late, err := s.cell(k, classes)
	if err != nil {
		return nil, 0, err
	}
	g, at = s.add(k)
	g.set, g.late = set, late
	return g, at, nil
}

// Values of Options.Classes: which rows are counted by predicted class.
const (
	ClassesNone   = "none" // as ""
	ClassesModel  = "model"
	ClassesSlices = "slices" // of every slice too
)
