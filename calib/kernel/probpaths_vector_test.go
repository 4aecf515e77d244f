//go:build (amd64 || arm64) && !purego

package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

func TestEveryProbPathAgainstReference(t *testing.T) {
	for _, p := range paths() {
		t.Run(pathNames[p], func(t *testing.T) {
			force(t, p)
			checkProbRows(t, rand.New(rand.NewPCG(25, 26)))
		})
	}
}

// TestProbPathsGiveTheSameBits compares more than 100,000 rows.
func TestProbPathsGiveTheSameBits(t *testing.T) {
	testsize.Slow(t)
	rng := rand.New(rand.NewPCG(27, 28))
	compared, refused := 0, 0
	for _, k := range testKs() {
		n := min(1600, 1+60_000/k)
		q := someProbs(rng, n, k)
		var rows [3][]Row
		for _, p := range paths() {
			force(t, p)
			rows[p] = make([]Row, n)
			ProbRows(rows[p], q, k)
			for i, r := range rows[p] {
				if rowBits(r) != rowBits(rows[0][i]) {
					t.Fatalf("K=%d row %d: %s %+v, go %+v: %v", k, i, pathNames[p], r, rows[0][i],
						q[i*k:i*k+min(k, 40)])
				}
				if p == pathGo && !r.OK {
					refused++
				}
			}
		}
		compared += n
	}
	t.Logf("%d rows on %d paths, %d refused", compared, len(paths()), refused)
	if compared < 100_000 {
		t.Errorf("got %d rows, want 100,000", compared)
	}
}

// BenchmarkProbRows goes over softmax rows of normal logits, sd 4, 64 MB of them.
func BenchmarkProbRows(b *testing.B) {
	for _, k := range []int{2, 10, 30, 100, 1000, 32000} {
		q := benchProbs(k)
		for _, p := range paths() {
			b.Run(fmt.Sprintf("%s/K=%d", pathNames[p], k), func(b *testing.B) {
				force(b, p)
				benchProbRows(b, q, k)
			})
		}
	}
}

func benchProbs(k int) []float32 {
	n := (16 << 20) / k
	e, rows := make([]float32, n*k), make([]Row, n)
	LogitRows(rows, e, slab()[:n*k], k, 1)
	for i, r := range rows {
		for j := i * k; j < (i+1)*k; j++ {
			e[j] = float32(float64(e[j]) * r.Scale)
		}
	}
	return e
}

func benchProbRows(b *testing.B, q []float32, k int) {
	total := len(q) / k
	n := min(1<<11, max(2*lanes, 1<<18/k/lanes*lanes))
	if inUse == pathGo {
		n = max(1, 1<<14/k)
	}
	rows := make([]Row, n)
	at, done := 0, 0
	b.SetBytes(int64(4 * n * k))
	for b.Loop() {
		if at+n > total {
			at = 0
		}
		ProbRows(rows, q[at*k:(at+n)*k], k)
		at += n
		done += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/row")
}
