//go:build arm64 && !purego

package kernel

import "unsafe"

// path is the instruction set in use.
type path int

const (
	pathGo path = iota
	pathNEON
)

// inUse is NEON, which every arm64 has; tests force plain Go.
var inUse = best()

func best() path { return pathNEON }

// The assembly relies on these.
var (
	_ [0]struct{} = [unsafe.Offsetof(sums{}.second) - 128]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(sums{}.s) - 320]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(sums{}.inv) - 704]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(params{}.inv) - 8]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(probSums{}.arg) - 128]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(probSums{}.sum) - 192]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(probSums{}.p2) - 448]struct{}{}
)

// start has nothing to do where the maxima are not found ahead.
func (a *sums) start([]float32, int) {}

// blocks makes the first n rows; a bit of bad is a row that the float64 path must do, of the last block.
func (a *sums) blocks(rows []Row, e, z []float32, k int, p *params) (n int, bad uint32) {
	return a.oneBlock(rows, e, z, k, p)
}

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do. z goes on to the last row.
func (a *sums) block(rows []Row, e, z []float32, k int, p *params) (bad uint32) {
	n := len(rows)
	switch {
	case inUse == pathGo || k < 4:
		n = 0
	case k >= columnK:
		a.long(n, e, z, k, p)
	default:
		n &^= 3
		a.short(n, e, z, k, p)
	}
	for i := range rows[:n] {
		if !a.finish(&rows[i], i, p) {
			bad |= 1 << i
		}
	}
	if n < len(rows) {
		bad |= a.blockGo(rows[n:], part(e, n*k, len(rows)*k), z[n*k:], k, p) << n
	}
	return bad
}

// short makes the sums of n rows, a multiple of 4.
func (a *sums) short(n int, e, z []float32, k int, p *params) {
	var columns [4 * columnK]float32
	switch {
	case n == 0:
	case e != nil:
		shortRowsENEON(a, &e[0], &z[0], k, n/4, p, &columns)
	default:
		shortRowsNEON(a, nil, &z[0], k, n/4, p, &columns)
	}
}

func (a *sums) long(n int, e, z []float32, k int, p *params) {
	var flushed [3 * lanes / 2]float64
	if e != nil {
		longRowsENEON(a, &e[0], &z[0], n, k, p, &flushed)
		return
	}
	longRowsNEON(a, nil, &z[0], n, k, p, &flushed)
}

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do.
func (a *probSums) block(rows []Row, q []float32, k int, least float64) (bad uint32) {
	n := len(rows)
	switch {
	case inUse == pathGo || k < 4:
		n = 0
	case k >= columnK:
		var flushed [2 * lanes]float64
		longProbsNEON(a, &q[0], n, k, &flushed)
	default:
		if n &^= 3; n > 0 {
			var columns [4 * columnK]float32
			shortProbsNEON(a, &q[0], k, n/4, &columns)
		}
	}
	for i := range rows[:n] {
		if !a.finish(&rows[i], i, least) {
			bad |= 1 << i
		}
	}
	if n < len(rows) {
		bad |= a.blockGo(rows[n:], q[n*k:], k, least) << n
	}
	return bad
}
