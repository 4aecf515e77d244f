package slicing

import "github.com/plumbline/plumbline/pipeline"

// Turns is the number of panes from one turn of a slice to its next; 0 and 1 mean every pane. There may be thousands of
// slices, and a pane of a slice costs about the same however few rows it has. So rows of several panes share one cell:
//
//	label pane       the first from the row's on that is the slice's turn
//	prediction pane  the last of the row's span of so many panes, all spans from pane 0 on
//
// Turns of slices differ, so that work does not come all at once. Spans do not: buckets of windows are whole spans.
type Turns int64

// TurnOf returns the hash that sets a slice's phase. slice is "column=value".
func TurnOf(slice string) uint32 { return turnOf(2166136261, slice) }

// TurnOfValue returns TurnOf(column + "=" + value).
func TurnOfValue(column, value string) uint32 {
	return turnOf(turnOf(TurnOf(column), "="), value)
}

// turnOf is FNV-1a of 32 bits.
func turnOf(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// Next returns the first pane from p on at which it is the slice's turn.
func (n Turns) Next(p int64, turn uint32) int64 {
	if n <= 1 {
		return p
	}
	late := (p + int64(turn)) % int64(n)
	if late <= 0 {
		return p - late
	}
	return p + int64(n) - late
}

// Span returns the last pane of the span that p is in.
func (n Turns) Span(p int64) int64 {
	if n <= 1 {
		return p
	}
	return (pipeline.PaneIndex(p, int64(n))+1)*int64(n) - 1
}

// TurnsWithin are the most panes that take no longer than most together, and of which all slides are multiples.
// Times that their own checks refuse give 1.
func TurnsWithin(most, pane int64, slides []int64) Turns {
	if pane <= 0 || most < pane {
		return 1
	}
	limit, whole := most/pane, int64(0) // whole: what divides all slides
	for _, slide := range slides {
		for whole, slide = slide, whole; slide != 0; {
			whole, slide = slide, whole%slide
		}
	}
	switch {
	case whole == 0: // no slide forbids any
		return Turns(limit)
	case whole < 0 || whole%pane != 0:
		return 1
	}
	n, best := whole/pane, int64(1)
	// Divisors come in pairs: a search through all up to the limit takes seconds where panes are short.
	for d := int64(1); d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		for _, x := range [...]int64{d, n / d} {
			if x <= limit {
				best = max(best, x)
			}
		}
	}
	return Turns(best)
}
