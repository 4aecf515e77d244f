package operators

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/pipeline"
)

// OtherSlice pools the rows of the slices that are beyond slices.max_keys.
const OtherSlice = "~other"

// StatsConfig configures Stats.
type StatsConfig struct {
	Acc     acc.Config // K is set by model
	Pane    int64      // pane length, ns
	Slices  []string   // slice columns
	MaxKeys int        // (model, version, slice) keys
}

// Stats keeps one accumulator set per cell (key, label pane, prediction pane) and hands a label pane's cells to
// the outbox when the watermark passes its end: once, never revised. Every prediction counts in the cell
// (pane of ts, pane of ts) as seen; every labelled row in (pane of label ts, pane of ts) as labelled.
type Stats struct {
	cfg    StatsConfig
	outbox *pipeline.Outbox
	counts *pipeline.Counts
	keys   keyTable
	cells  map[cellKey]*acc.Set
	late   map[cellKey]*acc.Set
	closed int64 // label panes before this one have been emitted
	pool   map[int][]*acc.Set
	p      []float64 // softmax of the row at hand
	z      []float32 // scratch of sampleScores
	last   cachedCell

	labelled int64 // rows of the batch at hand
}

type cellKey struct {
	key                       int32
	labelPane, predictionPane int64
}

type cachedCell struct {
	key  cellKey
	set  *acc.Set
	late bool
}

// NewStats returns the operator.
func NewStats(cfg StatsConfig, outbox *pipeline.Outbox, counts *pipeline.Counts) *Stats {
	return &Stats{cfg: cfg, outbox: outbox, counts: counts, keys: newKeyTable(cfg.MaxKeys), cells: map[cellKey]*acc.Set{},
		late: map[cellKey]*acc.Set{}, closed: math.MinInt64, pool: map[int][]*acc.Set{}}
}

// Process implements pipeline.Operator; batches pass on unchanged.
func (s *Stats) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) error {
	if b.Kind == arrowio.Labels {
		return emit(b)
	}
	if cap(s.p) < b.K {
		s.p = make([]float64, b.K)
	}
	for i := range b.N {
		if !good(b, i) {
			continue
		}
		if err := s.row(b, i); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	s.counts.Add(pipeline.CountLabelled, s.labelled)
	s.labelled = 0
	return emit(b)
}

// statRow is a row with what every key that it counts in needs.
type statRow struct {
	kernel.Row
	z               []float32
	p               []float64
	probs           bool
	id              arrowio.ID
	ts, labelTS     int64
	pane, labelPane int64
	label           int32 // -1 = not yet known
	weight, served  float64
	nll             float64
	prediction      bool // counts as seen
}

func (s *Stats) row(b *arrowio.Batch, i int) error {
	x := statRow{z: b.Scores[i*b.K : (i+1)*b.K], p: s.p[:b.K], probs: b.Probs, ts: b.TS[i], labelTS: b.TS[i], label: -1,
		weight: 1, served: math.NaN(), prediction: b.Kind == arrowio.Predictions}
	var ok bool
	if x.Row, ok = scoreRow(x.z, x.p, b.Probs); !ok {
		// The decoder rejects such rows; here they would be a programmer's mistake.
		return fmt.Errorf("scores of a good row are not finite")
	}
	x.pane = pipeline.PaneIndex(x.ts, s.cfg.Pane)
	if b.Weight != nil {
		x.weight = float64(b.Weight[i])
	}
	if b.Label != nil && b.Label[i] >= 0 {
		s.label(&x, b, i)
	}
	m, _ := modelOf(b, i)
	if err := s.count(&x, m, "", ""); err != nil {
		return err
	}
	for c := range b.Slices {
		col := &b.Slices[c]
		if col.Index[i] < 0 {
			continue
		}
		if err := s.count(&x, m, col.Name, col.Values[col.Index[i]]); err != nil {
			return err
		}
	}
	return nil
}

// label fills what a labelled row has more.
func (s *Stats) label(x *statRow, b *arrowio.Batch, i int) {
	x.label, x.id = b.Label[i], rowID(b, i)
	if b.LabelTS != nil {
		x.labelTS = b.LabelTS[i]
	}
	x.labelPane = pipeline.PaneIndex(x.labelTS, s.cfg.Pane)
	x.nll = kernel.NLL(x.Row, x.z, int(x.label), x.probs)
	if b.Served != nil {
		x.served = float64(b.Served[i])
	}
	s.labelled++
}

// scoreRow runs the row kernel.
func scoreRow(z []float32, p []float64, probs bool) (kernel.Row, bool) {
	if probs {
		return kernel.Probs(z, p)
	}
	return kernel.Logits(z, p)
}

// count adds a row to the cells of one key.
func (s *Stats) count(x *statRow, m arrowio.ModelKey, column, value string) error {
	key, pooled := s.keys.index(m, column, value, len(x.z))
	if pooled {
		s.counts.Add(pipeline.CountPooled, 1)
	}
	if x.prediction {
		set, late, err := s.cell(cellKey{key, x.pane, x.pane}, len(x.z))
		if err != nil {
			return err
		}
		if err := set.Predict(x.Row, x.weight); err != nil {
			return err
		}
		s.countLate(late, column)
	}
	if x.label < 0 {
		return nil
	}
	set, late, err := s.cell(cellKey{key, x.labelPane, x.pane}, len(x.z))
	if err != nil {
		return err
	}
	if err := set.Label(x.Row, x.p, int(x.label), x.nll, x.weight, x.labelTS-x.ts, x.served); err != nil {
		return err
	}
	if !x.prediction {
		s.countLate(late, column)
	}
	return set.Sample(acc.SampleRow{ID: x.id, TS: x.ts, LabelTS: x.labelTS, W: float32(x.weight), Y: x.label, Z: s.sampleScores(x.z, x.probs)})
}

// countLate counts a late row once, not once for every slice.
func (s *Stats) countLate(late bool, column string) {
	if late && column == "" {
		s.counts.Add(pipeline.CountLate, 1)
	}
}

// rowID is the row's id, or for rows without one a hash of where the row came from.
func rowID(b *arrowio.Batch, i int) arrowio.ID {
	if b.IDs != nil {
		return b.IDs[i]
	}
	var buf [16]byte
	binary.BigEndian.PutUint64(buf[:], uint64(b.Origin.Offset))
	binary.BigEndian.PutUint32(buf[8:], uint32(b.Origin.Partition))
	binary.BigEndian.PutUint32(buf[12:], uint32(i))
	return arrowio.HashID(string(buf[:]))
}

// sampleScores is logits into scratch memory: the sample copies what it keeps.
func (s *Stats) sampleScores(z []float32, probs bool) []float32 {
	if !probs {
		return z
	}
	s.z = append(s.z[:0], z...)
	return logitsOf(s.z)
}

// logits are what the sample keeps: the scores, or the logarithms of probabilities, with zero taken as the
// smallest float32 so that every kept score is finite.
func logits(z []float32, probs bool) []float32 {
	if !probs {
		return z
	}
	return logitsOf(append([]float32(nil), z...))
}

func logitsOf(q []float32) []float32 {
	for k := range q {
		q[k] = float32(kernel.LogProb(q[k]))
	}
	return q
}
