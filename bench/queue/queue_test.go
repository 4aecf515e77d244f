package queue

import (
	"slices"
	"sync/atomic"
	"testing"
)

func TestResults(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 50} {
		jobs, got := []int{}, []int(nil)
		for i := range 40 {
			jobs = append(jobs, i)
		}
		var now, most atomic.Int32
		for r := range Results(jobs, workers, func(j int) int {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			defer now.Add(-1)
			return j * j
		}) {
			got = append(got, r)
		}
		slices.Sort(got)
		for i := range jobs {
			jobs[i] *= jobs[i]
		}
		if !slices.Equal(got, jobs) || int(most.Load()) > max(workers, 1) {
			t.Errorf("%d workers: %v, %d at a time; want %v", workers, got, most.Load(), jobs)
		}
	}
}

// TestResultsStop: who stops reading after some results has no job running any more, and not all were begun.
func TestResultsStop(t *testing.T) {
	var begun, ended atomic.Int32
	n := 0
	for range Results(make([]int, 1000), 3, func(int) int { begun.Add(1); defer ended.Add(1); return 0 }) {
		if n++; n == 5 {
			break
		}
	}
	if b := begun.Load(); n != 5 || b != ended.Load() || b < 5 || b == 1000 {
		t.Errorf("%d results of %d jobs, of which %d ended", n, b, ended.Load())
	}
	for range Results(nil, 2, func(int) int { t.Error("a job that is not there"); return 0 }) {
		t.Error("a result of no job")
	}
}
