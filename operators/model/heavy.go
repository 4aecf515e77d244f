package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// heavy knows which values of a column of a model version have statistics of their own, and which would deserve it: by their rows, halved
// at every multiple of a half-life of event time. Rows are predictions, with labels or without, so that nothing of an outcome decides
// what is tested.
//
// Kept values are counted exactly since they are kept. The others have a Misra-Gries summary of some thousands of counters, merged pane by
// pane: a count in it is never above the true one, and below it by at most N/(counters+1), where N are the pooled rows, halved alike.
// Reference: Agarwal et al., Mergeable Summaries, PODS 2012, section 2.
type heavy struct {
	kept, pooled map[string]int64
	epoch        int64 // of the half-life, of the latest rows
	more         int64 // epoch after which pooled has all values again: some were dropped for want of counters
}

func newHeavy() *heavy {
	return &heavy{kept: map[string]int64{}, pooled: map[string]int64{}, epoch: minPane, more: minPane}
}

// observe takes the rows of a label pane by value.
func (h *heavy) observe(epoch int64, rows map[string]int64, counters int) {
	h.decay(epoch)
	for value, n := range rows {
		if _, ok := h.kept[value]; ok {
			h.kept[value] += n
		} else {
			h.pooled[value] += n
		}
	}
	h.shrink(counters)
}

// decay halves all counts once for each epoch that began since the latest rows.
func (h *heavy) decay(epoch int64) {
	if h.epoch == minPane {
		h.epoch = epoch
	}
	by := epoch - h.epoch
	if by <= 0 {
		return
	}
	h.epoch = epoch
	const all = 63
	for value, n := range h.kept {
		h.kept[value] = n >> min(by, all)
	}
	for value, n := range h.pooled {
		if n >>= min(by, all); n > 0 {
			h.pooled[value] = n
		} else {
			delete(h.pooled, value)
		}
	}
}

// shrink leaves at most so many counters: the count of the first that has no place is taken from each.
func (h *heavy) shrink(counters int) {
	if len(h.pooled) <= counters {
		return
	}
	counts := slices.Sorted(maps.Values(h.pooled))
	least := counts[len(counts)-1-counters]
	for value, n := range h.pooled {
		if n > least {
			h.pooled[value] = n - least
		} else {
			delete(h.pooled, value)
		}
	}
	h.more = h.epoch + 1 // what was dropped counts for two half-lives at most
}

// weight is a value with its count.
type weight struct {
	value string
	rows  int64
}

// byWeight lists counts, the heaviest first, of equals by name.
func byWeight(counts map[string]int64) []weight {
	out := make([]weight, 0, len(counts))
	for value, n := range counts {
		out = append(out, weight{value, n})
	}
	slices.SortFunc(out, func(a, b weight) int { return cmp.Or(cmp.Compare(b.rows, a.rows), strings.Compare(a.value, b.value)) })
	return out
}

// settle chooses the kept values, at most limit: free places go to the heaviest, and a pooled value takes the place of the lightest kept
// one where it is clearly heavier. It returns those that came and those that went, ascending.
func (h *heavy) settle(limit int) (in, out []string) {
	if len(h.pooled) == 0 && len(h.kept) <= limit {
		return nil, nil
	}
	kept, pooled := byWeight(h.kept), byWeight(h.pooled)
	leave := func() {
		last := kept[len(kept)-1]
		kept, out = kept[:len(kept)-1], append(out, last.value)
		if delete(h.kept, last.value); last.rows > 0 {
			h.pooled[last.value] = last.rows
		}
	}
	enter := func() {
		first := pooled[0]
		pooled, in = pooled[1:], append(in, first.value)
		delete(h.pooled, first.value)
		h.kept[first.value] = first.rows
	}
	for len(h.kept) > limit { // the bound is lower than it was
		leave()
	}
	for len(h.kept) < limit && len(pooled) > 0 {
		enter()
	}
	for len(pooled) > 0 && len(kept) > 0 && heavier(pooled[0].rows, kept[len(kept)-1].rows) {
		leave()
		enter()
	}
	slices.Sort(in)
	slices.Sort(out)
	return in, out
}

// heavier reports whether a count is above another by more than half of that and by more than 4 standard deviations of their difference if
// both were Poisson: so values of one weight do not take turns, and one that goes must gain half again to come back.
func heavier(a, b int64) bool {
	d := a - b - b/2
	return d > 0 && float64(d)*float64(d) > 16*float64(a+b)
}

// full reports whether some pooled values have no counter.
func (h *heavy) full() bool { return h.epoch <= h.more }
