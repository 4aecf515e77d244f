//go:build (amd64 || arm64) && !purego

package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

func pathName() string { return pathNames[inUse] }

// paths are those that this machine has, the best one last.
func paths() (all []path) {
	for p := pathGo; p <= best(); p++ {
		all = append(all, p)
	}
	return all
}

// force runs the rest of a test on p.
func force(t testing.TB, p path) {
	inUse = p
	t.Cleanup(func() { inUse = best() })
}

func TestEveryPathAgainstReference(t *testing.T) {
	for _, p := range paths() {
		t.Run(pathNames[p], func(t *testing.T) {
			force(t, p)
			TestLogitRowsAgainstReference(t)
		})
	}
}

func rowBits(r Row) [9]uint64 {
	b := func(v float64) uint64 { return math.Float64bits(v) }
	ok := uint64(0)
	if r.OK {
		ok = 1
	}
	return [9]uint64{uint64(r.Arg), b(r.Max), b(r.LSE), b(r.Conf), b(r.Second), b(r.Entropy), b(r.SumP2), b(r.Scale),
		ok}
}

// TestPathsGiveTheSameBits compares more than 100,000 rows.
func TestPathsGiveTheSameBits(t *testing.T) {
	testsize.Slow(t)
	rng := rand.New(rand.NewPCG(5, 6))
	compared, refused := 0, 0
	for _, k := range testKs() {
		n := min(1600, 1+100_000/k)
		z := someRows(rng, n, k)
		temp := math.Exp(rng.NormFloat64())
		var rows [3][]Row
		var es [3][]float32
		for _, p := range paths() {
			force(t, p)
			rows[p], es[p] = make([]Row, n), make([]float32, n*k)
			LogitRows(rows[p], es[p], z, k, temp)
			without := make([]Row, n)
			LogitRows(without, nil, z, k, temp)
			for i := range rows[p] {
				want := rows[0][i]
				if rowBits(rows[p][i]) != rowBits(want) || rowBits(without[i]) != rowBits(want) {
					t.Fatalf("K=%d t=%g row %d: %s %+v, without e %+v, go %+v", k, temp, i, pathNames[p], rows[p][i],
						without[i], want)
				}
				if !want.OK {
					if p == pathGo {
						refused++
					}
					continue
				}
				for j := i * k; j < (i+1)*k; j++ {
					if math.Float32bits(es[p][j]) != math.Float32bits(es[0][j]) {
						t.Fatalf("K=%d row %d: %s e[%d] = %g, go %g", k, i, pathNames[p], j-i*k, es[p][j], es[0][j])
					}
				}
			}
		}
		compared += n
	}
	t.Logf("%d rows on %d paths, %d refused", compared, len(paths()), refused)
}
