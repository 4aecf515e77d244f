package acc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

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
	if err := s.Label(b.r, b.p, b.y, b.nll, 1, 1e9, math.NaN()); err != nil {
		return err
	}
	return s.Sample(SampleRow{ID: b.id, TS: 1, LabelTS: 2, W: 1, Y: int32(b.y), Z: b.z})
}

func BenchmarkUpdate(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("K=%d", k), func(b *testing.B) {
			rows := benchRows(k, 2048)
			s := benchSet(k)
			for i := range rows {
				if err := rows[i].update(s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := rows[i%len(rows)].update(s); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
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
		{10, 100, 5660}, {10, 10000, 164_658}, {100, 100, 6700}, {100, 10000, 176_006}, {1000, 100, 10_180}, {1000, 10000, 216_500},
	} {
		s := must(New(Config{K: f.k}))
		for _, r := range benchRows(f.k, f.rows) {
			if err := r.update(s); err != nil {
				t.Fatal(err)
			}
		}
		l := s.Labelled
		got := len(encode(t, s))
		t.Logf("K=%d, %d rows: %d bytes (seen %d; labelled: msp %d, margin %d, negent %d, soft %d, class-wise %d, scores %d, lag %d)",
			f.k, f.rows, got, len(encode(t, s.Seen)), len(encode(t, &l.MSP)), len(encode(t, &l.Margin)), len(encode(t, &l.NegEnt)),
			len(encode(t, l.Soft)), len(encode(t, l.ClassWise)), len(encode(t, &l.Scores)), len(encode(t, &l.Lag)))
		if got > f.want*11/10 {
			t.Errorf("K=%d, %d rows: got %d bytes, want about %d", f.k, f.rows, got, f.want)
		}
	}
}
