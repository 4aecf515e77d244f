package acc

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkSummary measures what it takes to add a few rows to a window's sums at rest, and to read them.
func BenchmarkSummary(b *testing.B) {
	for _, l := range []struct{ k, rows int }{{10, 10}, {10, 600}, {10, 6000}, {100, 60}, {100, 6000}} {
		rng := rand.New(rand.NewPCG(1, 2))
		set, few := randSet(b, rng, l.k, l.rows, false), randSet(b, rng, l.k, 10, false)
		s := must(NewSummary(Config{K: l.k}, false))
		var whole Packed
		if err := s.Pack(&whole, func(s *Summary) error { return s.Add(set) }); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("K=%d/%d rows/add 10", l.k, l.rows), func(b *testing.B) {
			for b.Loop() {
				p := whole
				if err := s.Pack(&p, func(s *Summary) error { return s.Add(few) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(whole.Bytes()), "B/sums")
		})
		b.Run(fmt.Sprintf("K=%d/%d rows/read", l.k, l.rows), func(b *testing.B) {
			s.Reset()
			for b.Loop() {
				if err := s.Unpack(&whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
