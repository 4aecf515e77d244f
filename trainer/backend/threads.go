package backend

import (
	"sync"

	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/optim"
)

// Threads is how many goroutines share a large product of g: what else passes over much memory in a step is shared by
// as many.
func Threads(g head.GEMM) int {
	if t, ok := g.(interface{ Threads() int }); ok {
		return max(1, t.Threads())
	}
	return 1
}

// leastShared is the number of values from which a pass over memory is shared: about 50 µs of one thread.
const leastShared = 1 << 18

// ranges calls f with the parts of 0 … n−1, one for each thread where there are values enough, of width values each.
func ranges(threads, n, width int, f func(from, to int)) {
	if threads <= 1 || n*width < leastShared {
		f(0, n)
		return
	}
	size := (n + threads - 1) / threads
	var group sync.WaitGroup
	for from := size; from < n; from += size {
		group.Go(func() { f(from, min(from+size, n)) })
	}
	f(0, min(size, n))
	group.Wait()
}

// Step is [optim.SGD.Step] by so many goroutines where there are many parameters: the same bits.
func Step(o optim.SGD, threads int, w, g, v []float32) {
	if threads <= 1 || len(w) < leastShared { // no closure
		o.Step(w, g, v)
		return
	}
	ranges(threads, len(w), 1, func(from, to int) { o.Step(w[from:to], g[from:to], v[from:to]) })
}
