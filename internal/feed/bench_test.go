package feed

import (
	"errors"
	"io"
	"testing"
	"time"
)

// BenchmarkNext measures what `plumbline produce` can reach: rows to encoded messages, K = 10, no features.
func BenchmarkNext(b *testing.B) {
	r := &Rows{N: 10000, K: 10, Scores: make([]float32, 100000), Label: make([]int32, 10000)}
	src, err := r.Open(Order{Shuffle: true, Repeat: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	f, err := New(src, Options{Partitions: 4, EventRate: 10000, DelayMax: 5 * time.Minute, Limit: int64(b.N)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for {
		_, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
