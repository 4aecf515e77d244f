package model

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
)

// cellOf is a shard's encoded cell of so many rows of ten classes.
func cellOf(b testing.TB, seed uint64, rows int) []byte {
	cfg := worldtest.Accumulators()
	cfg.K = 10
	set, err := acc.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	block := acc.NewBlock(cfg.K)
	for ; rows > 0; rows -= acc.BlockRows(cfg.K) {
		n := min(rows, acc.BlockRows(cfg.K))
		scores := make([]float32, n*cfg.K)
		for i := range scores {
			scores[i] = float32(2 * rng.NormFloat64())
		}
		block.Score(scores, false)
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
			if err := block.SetRow(i, rng.IntN(cfg.K), 1, rng.Int64N(2e9), math.NaN()); err != nil {
				b.Fatal(err)
			}
		}
		if err := set.PredictRows(block, all); err != nil {
			b.Fatal(err)
		}
		if err := set.LabelRows(block, all); err != nil {
			b.Fatal(err)
		}
	}
	data, err := set.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// TestSmallCellsWait: cells of few rows wait side by side; that is the same as to merge each when it comes. One whose
// sums leave no room is refused when it comes, and the others stay.
func TestSmallCellsWait(t *testing.T) {
	var cells [][]byte
	for i := range 5 {
		cells = append(cells, cellOf(t, uint64(i), 1+i%3))
	}
	want := new(acc.Set)
	in := newInbox(new(openCells))
	for i, data := range cells {
		set := new(acc.Set)
		if err := set.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = set
		} else if err := want.Merge(set); err != nil {
			t.Fatal(err)
		}
		c, _, err := receive(data)
		if err != nil || len(data) > smallCell {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		if err := in.put(1, 1, c, 0); err != nil {
			t.Fatal(err)
		}
	}
	if c := in.pending[1][1]; len(c.more) == 0 {
		t.Error("no cell waits beside the first")
	}
	for range 2 {
		full, _, err := receive(heavyCell(t))
		if err != nil {
			t.Fatal(err)
		}
		if err = in.put(1, 2, full, 0); err != nil && !errors.Is(err, acc.ErrOverflow) {
			t.Errorf("sums without room: %v", err)
		}
	}
	if c := in.pending[1][2]; c.predictions != 1 || len(c.more) > 0 {
		t.Errorf("%d predictions of weight 2^30 and %d beside: want the first", c.predictions, len(c.more))
	}
	full := newInbox(nil) // a cell that is encoded again keeps that there is no room
	for _, data := range [][]byte{cells[0], heavyCell(t)} {
		c, _, err := receive(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := full.put(1, 1, c, 0); err != nil {
			t.Fatal(err)
		}
	}
	if c := full.pending[1][1]; c.set != nil || !c.alone {
		t.Errorf("a full cell: decoded %t, merged at once %t; want false, true", c.set != nil, c.alone)
	}
	want2, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := in.pending[1][1].encoded(); !bytes.Equal(got, want2) {
		t.Errorf("%d bytes of a checkpoint, want %d", len(got), len(want2))
	}
	pane, err := in.take(1, 1e9)
	if err != nil {
		t.Fatal(err)
	}
	want.TakeSample()
	got, err := pane.Cells[0].Set.AppendBinary(nil)
	want2, err2 := want.AppendBinary(nil)
	if err = errors.Join(err, err2); err != nil || !bytes.Equal(got, want2) {
		t.Errorf("%d bytes of a pane, want %d (%v)", len(got), len(want2), err)
	}
}

// heavyCell is of one row of so much weight that there is no room for two.
func heavyCell(t *testing.T) []byte { return weighty(t, 1.9*(1<<30)) }

// weighty is a cell of one prediction of a weight.
func weighty(t *testing.T, w float64) []byte {
	cfg := worldtest.Accumulators()
	cfg.K = 10
	set, err := acc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	block := acc.NewBlock(cfg.K)
	block.Score(make([]float32, cfg.K), false)
	err = block.SetRow(0, 1, w, 0, math.NaN())
	if err = errors.Join(err, set.PredictRows(block, []int32{0})); err != nil {
		t.Fatal(err)
	}
	data, err := set.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestManyCellsBeside: cells of the largest weights that producers may send wait beside a large one that is encoded for
// good. Where their sums have no room, the one that is too much is refused when it comes, and the others stay.
func TestManyCellsBeside(t *testing.T) {
	in, data := newInbox(nil), weighty(t, 1.9*(1<<20))
	refused, rows := 0, int64(5000)
	for i := range 1300 {
		cell := data
		if i == 0 {
			cell = cellOf(t, 1, int(rows))
		} else {
			rows++
		}
		c, _, err := receive(cell)
		if err != nil {
			t.Fatal(err)
		}
		if err = in.put(1, 1, c, 0); errors.Is(err, acc.ErrOverflow) {
			refused++
			rows--
		} else if err != nil {
			t.Fatal(err)
		}
	}
	in.appendPending(nil)
	if got := in.pending[1][1].predictions; refused == 0 || got != rows {
		t.Errorf("%d refused, %d predictions, want %d", refused, got, rows)
	}
	if _, err := in.take(1, 10); err != nil {
		t.Error(err)
	}
}

// BenchmarkInbox is a pane's cells of 5,000 rows of each of four shards, until they are taken.
func BenchmarkInbox(b *testing.B) {
	const shards, rows = 4, 5000
	var cells [shards][]byte
	for i := range cells {
		cells[i] = cellOf(b, uint64(i), rows)
	}
	var open openCells
	before := testsize.Processor(b)
	for b.Loop() {
		in := newInbox(&open)
		for _, data := range cells {
			c, _, err := receive(data)
			if err != nil {
				b.Fatal(err)
			}
			if err := in.put(1, 1, c, 0); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := in.take(1, 1e9); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(testsize.Processor(b)-before)/float64(b.N)/shards/rows, "cpu-ns/row")
}
