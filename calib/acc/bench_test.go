package acc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/kernel"
)

type benchRow struct {
	r   kernel.Row
	p   []float64
	z   []float32
	y   int
	nll float64
	id  [16]byte
}

func benchRows(k, n int) []benchRow {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]benchRow, n)
	for i := range rows {
		r, p, z := randRow(rng, k)
		y := r.Arg
		if rng.IntN(5) == 0 {
			y = rng.IntN(k)
		}
		rows[i] = benchRow{r: r, p: p, z: z, y: y, nll: r.LSE - float64(z[y])}
		rows[i].id[0], rows[i].id[1] = byte(i), byte(i>>8)
	}
	return rows
}

func benchSet(k int) *Set { return must(New(Config{K: k, SampleRows: 64, SampleBytes: 1 << 20})) }

// update is all that a labelled prediction costs.
func (b *benchRow) update(s *Set) error {
	if err := s.Predict(b.r, 1); err != nil {
		return err
	}
	if err := s.Label(b.r, b.p, Truth{b.y, b.nll, 1, 1e9, math.NaN()}); err != nil {
		return err
	}
	return s.AddSample(SampleRow{ID: b.id, TS: 1, LabelTS: 2, W: 1, Y: int32(b.y), Z: b.z})
}

// freshRows are logits that fill benchBytes, so that no cache and no branch predictor knows them.
type freshRows struct {
	k   int
	z   []float32
	y   []int32
	lag []int64
	all []int32 // 0, 1, …
}

const benchBytes = 64 << 20

func newFreshRows(k, size int) *freshRows {
	n := size / (4 * k)
	f := &freshRows{k: k, z: make([]float32, n*k), y: make([]int32, n), lag: make([]int64, n)}
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	for i := range n {
		scale, top := 3*math.Exp(rng.NormFloat64()), 0
		row := f.z[i*k : (i+1)*k]
		for j := range row {
			row[j] = float32(rng.NormFloat64() * scale)
			if row[j] > row[top] {
				top = j
			}
		}
		if rng.IntN(5) == 0 {
			top = rng.IntN(k)
		}
		f.y[i], f.lag[i] = int32(top), int64(math.Exp(rng.NormFloat64()*2)*1e9)
	}
	for i := range BlockRows(k) {
		f.all = append(f.all, int32(i))
	}
	return f
}

// blocks calls the kernel and then update for the rows of each block, and returns the ns a row that each took, by
// block.
func (f *freshRows) blocks(b *Block, update func(b *Block, at int) error) (kernels, updates []float64, err error) {
	step := len(f.all)
	for at := 0; at+step <= len(f.y); at += step {
		start := time.Now()
		b.Score(f.z[at*f.k:(at+step)*f.k], false)
		middle := time.Now()
		if err := update(b, at); err != nil {
			return nil, nil, err
		}
		kernels = append(kernels, float64(middle.Sub(start))/float64(step))
		updates = append(updates, float64(time.Since(middle))/float64(step))
	}
	return kernels, updates, nil
}

func (f *freshRows) set(b *Block, at int) error {
	for i := range f.all {
		if err := b.SetRow(i, int(f.y[at+i]), 1, f.lag[at+i], math.NaN()); err != nil {
			return err
		}
	}
	return nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// BenchmarkUpdate is the full update of a row by the number of classes, on fresh data: kernel-ns is the row kernel,
// update-ns all accumulators of a labelled row (label), or also of the prediction (both).
func BenchmarkUpdate(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		f := newFreshRows(k, benchBytes)
		for _, name := range []string{"label", "both"} {
			b.Run(fmt.Sprintf("%s/K=%d", name, k), func(b *testing.B) {
				s, block := must(New(Config{K: k})), NewBlock(k)
				s.CountClasses(true) // as a model's set does by default
				update := func(block *Block, at int) error {
					if err := f.set(block, at); err != nil {
						return err
					}
					if name == "both" {
						if err := s.PredictRows(block, f.all); err != nil {
							return err
						}
					}
					return s.LabelRows(block, f.all)
				}
				b.ReportAllocs()
				var kernels, updates []float64 // by block: the median does not see other load in some of them
				for b.Loop() {
					k, u, err := f.blocks(block, update)
					if err != nil {
						b.Fatal(err)
					}
					kernels, updates = append(kernels, k...), append(updates, u...)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(kernels), "kernel-ns")
				b.ReportMetric(median(updates), "update-ns")
				b.ReportMetric(75+.4*float64(k), "bar-ns")
			})
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	rows := benchRows(10, 1000)
	one, total := benchSet(10), benchSet(10)
	for i := range rows {
		if err := rows[i].update(one); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := total.Merge(one); err != nil {
			b.Fatal(err)
		}
		total.Reset()
	}
}

func TestNoAllocations(t *testing.T) {
	rows := benchRows(10, 500)
	s := benchSet(10)
	all := func() {
		s.Reset()
		for i := range rows {
			if err := rows[i].update(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	all()
	if got := testing.AllocsPerRun(5, all); got != 0 {
		t.Errorf("got %v allocations in %d warm rows, want 0", got, len(rows))
	}
	o := s.Clone()
	if got := testing.AllocsPerRun(5, func() {
		s.Reset()
		if err := s.Merge(o); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("got %v allocations in a warm merge, want 0", got)
	}
}

// TestEncodedSize prints the sizes that docs/format.md quotes and fails where they grow by a tenth.
func TestEncodedSize(t *testing.T) {
	for _, f := range []struct{ k, rows, want int }{
		{10, 100, 5660}, {10, 10000, 164_658}, {100, 100, 6700}, {100, 10000, 176_006}, {1000, 100, 10_180},
		{1000, 10000, 216_500},
	} {
		s := must(New(Config{K: f.k}))
		for _, r := range benchRows(f.k, f.rows) {
			if err := r.update(s); err != nil {
				t.Fatal(err)
			}
		}
		l := s.Labelled
		got := len(encode(t, s))
		t.Logf("K=%d, %d rows: %d bytes (seen %d; labelled: msp %d, margin %d, negent %d, soft %d, class-wise %d, "+
			"scores %d, lag %d)",
			f.k, f.rows, got, len(encode(t, s.Seen)), len(encode(t, &l.MSP)), len(encode(t, &l.Margin)),
			len(encode(t, &l.NegEnt)),
			len(encode(t, l.Soft)), len(encode(t, l.ClassWise)), len(encode(t, &l.Scores)), len(encode(t, &l.Lag)))
		if got > f.want*11/10 {
			t.Errorf("K=%d, %d rows: got %d bytes, want about %d", f.k, f.rows, got, f.want)
		}
	}
}

// TestMemory prints the sizes that docs/format.md quotes and fails where they grow by a quarter.
func TestMemory(t *testing.T) {
	for _, f := range []struct{ k, rows, want int }{
		{10, 10, 9400}, {10, 100, 38_392}, {10, 1000, 240_120}, {10, 10_000, 1_054_328}, {10, 100_000, 1_476_344},
		{100, 100, 49_464}, {100, 10_000, 1_114_424}, {1000, 10, 16_184}, {1000, 100, 52_280},
		{1000, 10_000, 1_371_064},
	} {
		s := must(New(Config{K: f.k}))
		for _, r := range benchRows(f.k, f.rows) {
			if err := r.update(s); err != nil {
				t.Fatal(err)
			}
		}
		got := s.Memory()
		l := s.Labelled
		t.Logf("K=%d, %d rows: %d bytes (a grid %d, class-wise %d)", f.k, f.rows, got, l.MSP.t.bytes(),
			l.ClassWise.bytes())
		if got > f.want*5/4 {
			t.Errorf("K=%d, %d rows: got %d bytes, want about %d", f.k, f.rows, got, f.want)
		}
	}
}

// BenchmarkCodec is what a pane costs besides its rows: a set of so many labelled predictions is encoded by its shard
// and decoded by its model's task.
func BenchmarkCodec(b *testing.B) {
	for _, n := range []int{512, 8192, 65536} {
		f, s, block := newFreshRows(10, 40*n), must(New(Config{K: 10})), NewBlock(10)
		s.CountClasses(true)
		_, _, err := f.blocks(block, func(block *Block, at int) error {
			if err := f.set(block, at); err != nil {
				return err
			}
			return s.BothRows(block, f.all)
		})
		if err != nil {
			b.Fatal(err)
		}
		data := must(s.AppendBinary(nil))
		b.Run(fmt.Sprintf("encode/rows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data = must(s.AppendBinary(data[:0]))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
		b.Run(fmt.Sprintf("decode/rows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := new(Set).UnmarshalBinary(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}
