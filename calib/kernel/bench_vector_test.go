//go:build (amd64 || arm64) && !purego

package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// slabBytes is more than the caches hold, so that every row comes from memory.
const slabBytes = 512 << 20

// slab is made once: normal scores, sd 4.
var slab = sync.OnceValue(func() []float32 {
	z := make([]float32, slabBytes/4)
	rng := rand.New(rand.NewPCG(1, 2))
	const fresh = 1 << 20
	for i := range z[:fresh] {
		z[i] = float32(4 * rng.NormFloat64())
	}
	for at := fresh; at < len(z); at += fresh { // no row of a few thousand comes again soon, and none at the same place
		shift := rng.IntN(fresh)
		copy(z[at:at+fresh], z[shift:fresh])
		copy(z[at+fresh-shift:at+fresh], z[:shift])
	}
	return z
})

// BenchmarkRows goes over the slab in blocks of 1 MB, of 32 rows at least and 2048 at most.
func BenchmarkRows(b *testing.B) {
	z := slab()
	for _, p := range paths() {
		for _, k := range []int{10, 100, 1000, 32000} {
			for _, store := range []bool{false, true} {
				name := fmt.Sprintf("%s/K=%d", pathNames[p], k)
				if store {
					name += "/e"
				}
				b.Run(name, func(b *testing.B) { benchRows(b, p, z, k, store) })
			}
		}
	}
}

func benchRows(b *testing.B, p path, z []float32, k int, store bool) {
	force(b, p)
	total := len(z) / k
	n := min(1<<11, max(2*lanes, 1<<18/k/lanes*lanes))
	if p == pathGo {
		n = max(1, 1<<14/k)
	}
	rows := make([]Row, n)
	var e []float32
	if store {
		n = max(1, min(n, 1<<14/k))
		rows, e = rows[:n], make([]float32, n*k)
	}
	at, done := 0, 0
	b.SetBytes(int64(4 * n * k))
	for b.Loop() {
		if at+n > total {
			at = 0
		}
		LogitRows(rows, e, z[at*k:(at+n)*k], k, 1)
		at += n
		done += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/row")
}
