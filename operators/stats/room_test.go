package stats

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// roomy is an operator with a bound on its cells, and its outbox.
func roomy(most int) (*Operator, *pipeline.Outbox) {
	outbox := pipeline.NewOutbox(0, 1, 10, 1)
	return New(Options{Acc: acc.Config{SampleRows: 8}, Pane: 10, MaxKeys: 10,
		CellBytes: most}, pipeline.Host{Outbox: outbox, Counts: pipeline.NewCounts()}), outbox
}

// scattered are rows with their labels, each in a pane of its own, of k classes and one of so many slice values.
func scattered(rows, k, values int) *arrowio.Batch {
	g := rand.New(rand.NewPCG(1, uint64(k)))
	b := &arrowio.Batch{Kind: arrowio.Predictions, N: rows, K: k,
		Models: []arrowio.ModelKey{{Model: "m", Version: "1"}}}
	c := arrowio.SliceColumn{Name: "region"}
	for v := range values {
		c.Values = append(c.Values, fmt.Sprint("region ", v))
	}
	for i := range rows {
		b.IDs, b.TS = append(b.IDs, arrowio.HashIntID(uint64(i))), append(b.TS, int64(10*i))
		b.Label = append(b.Label, int32(i%k))
		for range k {
			b.Scores = append(b.Scores, float32(g.NormFloat64()))
		}
		if values > 0 {
			c.Index = append(c.Index, int32(i%values))
		}
	}
	if values > 0 {
		b.Slices = []arrowio.SliceColumn{c}
	}
	return b
}

// TestScatteredRowsStayInBounds gives a shard messages whose rows are each in a pane of its own, open ones and late
// ones. Cells, their keys and panes stay within the bound, and every row goes out once.
func TestScatteredRowsStayInBounds(t *testing.T) {
	testsize.NoRace(t)
	const most, rows = 8 << 20, 20_000
	for _, c := range []struct {
		name      string
		k, values int
		late      bool
	}{
		{"open panes", 2, 0, false},
		{"late rows", 2, 0, true},
		{"more values than slots", 2, 1000, false},
		{"late, more values than slots", 2, 1000, true},
		{"1000 classes", 1000, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, outbox := roomy(most)
			n := min(rows, 2_000_000/c.k)
			b := scattered(n, c.k, c.values)
			if c.late {
				if err := s.Advance(t.Context(), int64(100*rows), nil); err != nil {
					t.Fatal(err)
				}
			}
			before := testsize.HeapInUse()
			if _, err := s.Process(t.Context(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
				return nil, nil
			}); err != nil {
				t.Fatal(err)
			}
			parts := outbox.Pending()
			outbox.Clear()
			seen, labelled, sent := counted(t, parts, c.late)
			parts = nil
			took := testsize.HeapInUse() - before
			t.Logf("%d rows: cells take %.1f MB, counted as %.1f MB; %.1f MB have gone out", n, took/1e6,
				float64(s.held())/1e6, float64(sent)/1e6)
			if s.held() > most || took > 1.5*most {
				t.Errorf("cells take %.1f MB, counted as %.1f MB, want at most %.1f MB", took/1e6,
					float64(s.held())/1e6, most/1e6)
			}
			if err := s.Advance(t.Context(), int64(200*rows), nil); err != nil {
				t.Fatal(err)
			}
			last, lastLabelled, _ := counted(t, outbox.Pending(), c.late)
			seen, labelled = seen+last, labelled+lastLabelled
			if seen != int64(n) || labelled != int64(n) || last == 0 {
				t.Errorf("%d predictions and %d labels went out, want %d each", seen, labelled, n)
			}
			runtime.KeepAlive(b)
		})
	}
}

// counted returns how many rows pane messages have, in whole model versions, and their bytes.
func counted(t *testing.T, ms []pipeline.Message, late bool) (seen, labelled int64, bytes int) {
	t.Helper()
	d := acc.NewDecoder()
	for _, m := range ms {
		bytes += len(m.Value)
		p, err := pipeline.DecodePane(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		if p.Late != late {
			t.Fatalf("cells of pane %d: late is %v", p.LabelPane, p.Late)
		}
		for _, cell := range p.Cells {
			if cell.Slice != "" {
				continue
			}
			d.Reset()
			set, err := d.DecodeSet(cell.Set)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := set.SeenRows()
			seen, labelled = seen+n, labelled+set.LabelledRows()
		}
	}
	return seen, labelled, bytes
}

// TestBlocksOfManyClassesAreNotKept gives a shard full messages of many numbers of classes.
func TestBlocksOfManyClassesAreNotKept(t *testing.T) {
	testsize.NoRace(t)
	const most = 40 << 20
	s, _ := roomy(1 << 20)
	before := testsize.HeapInUse()
	for k := 100; k < 419; k++ { // the last ones fill what is kept
		b := scattered(acc.BlockRows(k), k, 0)
		clear(b.TS)
		if _, err := s.Process(t.Context(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		s.outbox.Clear()
	}
	clear(s.pool)
	took := testsize.HeapInUse() - before
	t.Logf("%d blocks, the heap has grown by %.1f MB", len(s.blocks), took/1e6)
	if took > most {
		t.Errorf("%d blocks, the heap has grown by %.1f MB, want at most %.1f MB", len(s.blocks), took/1e6, most/1e6)
	}
}

// TestGrowthIsEstimatedFromAbove: cells never take more than the room that they have used up, whether they have a row
// or thousands, few classes or many.
func TestGrowthIsEstimatedFromAbove(t *testing.T) {
	const most = 1 << 40
	for _, k := range []int{2, 10, 100, 1000} {
		for _, panes := range []int64{1, 30, 5000} {
			s, _ := roomy(most)
			b := scattered(5000, k, 0)
			for i := range b.TS {
				b.TS[i] = int64(i) % panes * 10
			}
			s.acc.SampleRows, s.classes = 1024, ClassesSlices
			s.room = most
			if _, err := s.Process(t.Context(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
				return nil, nil
			}); err != nil {
				t.Fatal(err)
			}
			if got, estimate := s.held(), most-s.room; got > estimate {
				t.Errorf("%d classes, %d panes: cells take %d bytes, estimated are %d", k, panes, got, estimate)
			} else {
				t.Logf("%d classes, %d panes: cells take %d bytes, estimated are %d", k, panes, got, estimate)
			}
		}
	}
}
