package queue

import (
	"iter"
	"sync"
)

// Results runs every job, up to workers of them at a time, and yields what run returns as it comes. Whoever stops
// reading waits for the jobs that are running; the others are not begun.
func Results[J, R any](jobs []J, workers int, run func(J) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		todo, results, stop := make(chan J), make(chan R), make(chan struct{})
		var group sync.WaitGroup
		for range max(workers, 1) {
			group.Go(func() {
				for j := range todo {
					select {
					case results <- run(j):
					case <-stop:
					}
				}
			})
		}
		go func() {
			defer close(results)
			defer group.Wait()
			defer close(todo)
			for _, j := range jobs {
				select {
				case todo <- j:
				case <-stop:
					return
				}
			}
		}()
		for r := range results {
			if !yield(r) {
				close(stop)
				group.Wait()
				return
			}
		}
	}
}
