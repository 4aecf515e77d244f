package main

import (
	"slices"
)

// summary is a test on a stream at one level.
type summary struct {
	crossed float64 // share of runs that crossed after the change (or ever, where there is none)
	early   float64 // share that crossed before the change
	median  int     // rows from the change to the crossing, of runs that did not cross before; -1 where most never do
}

// summarise looks at first crossings; runs that crossed before the change say nothing about delay.
func summarise(first []int, change int) summary {
	var delays []int
	var s summary
	for _, at := range first {
		if at >= 0 && at <= change {
			s.early++
			continue
		}
		if at < 0 {
			at = 1 << 40
		} else {
			s.crossed++
		}
		delays = append(delays, at-change)
	}
	s.median = -1
	if len(delays) > 0 {
		slices.Sort(delays)
		if m := delays[(len(delays)-1)/2]; m < 1<<39 {
			s.median = m
		}
	}
	n := float64(len(first))
	s.crossed, s.early = s.crossed/n, s.early/n
	return s
}

// report is not written yet.
func report(options) error { return nil }
