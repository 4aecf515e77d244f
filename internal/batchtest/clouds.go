package batchtest

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/table"
)

// Clouds is a table of n rows, one a second from time 0 on, with scores of 0 and d ≥ k features that are normal but for
// that of the row's class, which is 2 higher: what a head can learn, and not all of it.
func Clouds(n, d, k int) *table.Table {
	r := rand.New(rand.NewPCG(3, 4))
	table := &table.Table{N: n, K: k, D: d, Scores32: make([]float32, n*k), Label: make([]int32, n),
		TS: make([]arrowio.Time, n), Features: make([]float32, n*d)}
	for i := range n {
		y := r.IntN(k)
		table.Label[i], table.TS[i] = int32(y), int64(i)*int64(time.Second)
		for j := range d {
			table.Features[i*d+j] = float32(r.NormFloat64())
		}
		table.Features[i*d+y] += 2
	}
	return table
}
