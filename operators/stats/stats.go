package stats

import (
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
	clocks *pipeline.Clocks // nil: closed holds for every model
	newest newest
	keys   keyTable
	cells  map[cellKey]*acc.Set
	late   map[cellKey]*acc.Set
	closed int64 // label panes before this one have been emitted
	pool   map[int][]*acc.Set
	z      []float32 // scratch of sampleScores
	last   cachedCell

	blocks map[int]*acc.Block // by K
	block  *acc.Block         // the current one
	scan   scan
	groups []group         // of the current block
	byCell map[cellKey]int // index into groups
	near   [1 << 10]int32  // by cellKey.near, the group found last

	labelled int64                      // rows of the current batch
	lateBy   map[arrowio.ModelKey]int64 // the late ones among them

	buf         []byte // scratch of emit
	pooledBytes int    // memory of the sets in pool
	room        int    // what the cells may take before they are measured
}

type cellKey struct {
	key                       int32
	labelPane, predictionPane int64
}

// near returns the index in Operator.near for a cell: consecutive cells of a key have different ones.
func (k *cellKey) near() uint {
	return uint(8*int64(k.key)+3*k.labelPane+k.predictionPane) & (1<<10 - 1)
}

type cachedCell struct {
	key  cellKey
	set  *acc.Set
	late bool
}

// group is the rows of the current block that belong to one cell.
type group struct {
	key  cellKey
	set  *acc.Set
	late bool
	// Rows to count as predictions, as labelled rows, or as both.
	predict, labels, both []int32
}

// New returns the operator.
func New(cfg Options, h pipeline.Host) *Operator {
	s := &Operator{
		cfg:    cfg,
		outbox: h.Outbox,
		counts: h.Counts,
		clocks: h.Clocks,
		keys:   newKeyTable(cfg.MaxKeys),
		cells:  map[cellKey]*acc.Set{},
		late:   map[cellKey]*acc.Set{},
		closed: math.MinInt64,
		pool:   map[int][]*acc.Set{},
		blocks: map[int]*acc.Block{},
		byCell: map[cellKey]int{},
		lateBy: map[arrowio.ModelKey]int64{},
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
	observe(s, newest{})
	if err := s.addGroups(block); err != nil {
		return err
	}
	s.room -= newRows((end-from)*(1+len(b.Slices)), b.K)
	return relieve(s)
}

// addGroups adds the rows that were sorted by cell.
func (s *Operator) addGroups(block *acc.Block) error {
	for g := range s.groups {
		g := &s.groups[g]
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
	s.groups = s.groups[:0]
	clear(s.byCell)
	return nil
}

// groupOf returns the group of a cell and its index in groups, making it if needed.
func (s *Operator) groupOf(k cellKey, classes int) (g *group, at int, err error) {
	near := &s.near[k.near()]
	if i := int(*near); i < len(s.groups) && s.groups[i].key == k {
		return &s.groups[i], i, nil
	}
	if i, ok := s.byCell[k]; ok {
		*near = int32(i)
		return &s.groups[i], i, nil
	}
	set, late, err := s.cell(k, classes)
	if err != nil {
		return nil, 0, err
	}
	n := len(s.groups)
	s.byCell[k], *near = n, int32(n)
	if n == cap(s.groups) {
		s.groups = append(s.groups, group{})
	}
	s.groups = s.groups[:n+1]
	g = &s.groups[n]
	g.key, g.set, g.late = k, set, late
	return g, n, nil
}

// Values of Options.Classes: which rows are counted by predicted class.
const (
	ClassesNone   = "none" // as ""
	ClassesModel  = "model"
	ClassesSlices = "slices" // of every slice too
)

// countsClasses reports whether the rows of a key are counted by predicted class.
func (s *Operator) countsClasses(key int32) bool {
	return s.cfg.Classes == ClassesSlices || s.cfg.Classes == ClassesModel && s.keys.names[key] == ""
}
