package slice

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/slicing"
)

// never is an epoch before all others.
const never = math.MinInt64

// Counts decides which values of a column of a model version have statistics of their own. It counts the rows of each
// value and halves the counts at every multiple of a half-life of event time. Rows are predictions, with or without
// labels, so that outcomes cannot influence what is tested (of labels alone: Admit).
//
// A kept value is counted exactly from the moment it is kept. All other values share a Misra-Gries summary with some
// thousands of counters, merged pane by pane. A count in the summary is never above the true count, and at most
// N/(counters+1) below it, where N is the number of pooled rows, halved in the same way. Reference: Agarwal et al.,
// Mergeable Summaries, PODS 2012, section 2.
type Counts struct {
	Kept, Pooled map[string]int64
	epoch        int64 // half-life epoch of the latest rows
	// More is the last epoch in which the pooled counts may miss values that were dropped for want of counters.
	More int64
}

// NewCounts returns empty counts.
func NewCounts() *Counts {
	return &Counts{Kept: map[string]int64{}, Pooled: map[string]int64{}, epoch: never, More: never}
}

// Observe adds the rows of a label pane, counted by value.
func (h *Counts) Observe(epoch int64, rows map[string]int64, counters int) {
	h.decay(epoch)
	for value, n := range rows {
		if _, ok := h.Kept[value]; ok {
			h.Kept[value] += n
		} else {
			h.Pooled[value] += n
		}
	}
	h.shrink(counters)
}

// decay halves all counts once for each epoch that began since the latest rows.
func (h *Counts) decay(epoch int64) {
	if h.epoch == never {
		h.epoch = epoch
	}
	by := epoch - h.epoch
	if by <= 0 {
		return
	}
	h.epoch = epoch
	const all = 63
	for value, n := range h.Kept {
		h.Kept[value] = n >> min(by, all)
	}
	for value, n := range h.Pooled {
		if n >>= min(by, all); n > 0 {
			h.Pooled[value] = n
		} else {
			delete(h.Pooled, value)
		}
	}
}

// shrink reduces the summary to the given number of counters. It subtracts the largest count that finds no place from
// every counter (Misra-Gries).
func (h *Counts) shrink(counters int) {
	if len(h.Pooled) <= counters {
		return
	}
	counts := slices.Sorted(maps.Values(h.Pooled))
	least := counts[len(counts)-1-counters]
	for value, n := range h.Pooled {
		if n > least {
			h.Pooled[value] = n - least
		} else {
			delete(h.Pooled, value)
		}
	}
	h.More = h.epoch + 1 // the effect of what was dropped lasts at most two half-lives
}

// weight is a value with its count.
type weight struct {
	value string
	rows  int64
}

// byWeight lists counts, heaviest first. Equal counts are ordered by name.
func byWeight(counts map[string]int64) []weight {
	out := make([]weight, 0, len(counts))
	for value, n := range counts {
		out = append(out, weight{value, n})
	}
	slices.SortFunc(out, func(a, b weight) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows),
			strings.Compare(a.value, b.value))
	})
	return out
}

// Settle chooses the kept values, at most limit. Free places go to the heaviest pooled values. A pooled value replaces
// the lightest kept one if it is clearly heavier. Settle returns the values that came in and those that went out, in
// ascending order.
func (h *Counts) Settle(limit int) (in, out []string) {
	if len(h.Pooled) == 0 && len(h.Kept) <= limit {
		return nil, nil
	}
	kept, pooled := byWeight(h.Kept), byWeight(h.Pooled)
	leave := func() {
		last := kept[len(kept)-1]
		kept, out = kept[:len(kept)-1], append(out, last.value)
		if delete(h.Kept, last.value); last.rows > 0 {
			h.Pooled[last.value] = last.rows
		}
	}
	enter := func() {
		first := pooled[0]
		pooled, in = pooled[1:], append(in, first.value)
		delete(h.Pooled, first.value)
		h.Kept[first.value] = first.rows
	}
	for len(h.Kept) > limit { // the limit was lowered
		leave()
	}
	for len(h.Kept) < limit && len(pooled) > 0 {
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

// Admit gives places that are still free to values without predictions, which have labels: those are older than their
// predictions, or these came before the bound was raised. Whoever came with predictions came first (Settle), and what
// the labels say does not matter. If there are more values than places, those with the least hashes come in. values are
// ascending, and so is what Admit returns.
func (h *Counts) Admit(values []string, limit int) (in []string) {
	values = slices.DeleteFunc(slices.Clone(values), func(x string) bool { _, kept := h.Kept[x]; return kept })
	over := LeastHashes(values, max(limit-len(h.Kept), 0))
	for _, x := range values {
		if !over[x] {
			h.Kept[x] = h.Pooled[x]
			delete(h.Pooled, x)
			in = append(in, x)
		}
	}
	return in
}

// heavier reports whether count a clearly exceeds b: by more than half of b, and by more than 4 standard deviations of
// the difference of two Poisson counts. This keeps values of equal weight from taking turns: a value that went out must
// gain half again to come back.
func heavier(a, b int64) bool {
	d := a - b - b/2
	return d > 0 && float64(d)*float64(d) > 16*float64(a+b)
}

// Full reports whether some pooled values may have no counter.
func (h *Counts) Full() bool { return h.epoch <= h.More }

// LeastHashes returns the values that are not among the limit values with the least hashes. Those with the least hashes
// are the ones that every shard has counted.
func LeastHashes(values []string, limit int) map[string]bool {
	over := map[string]bool{}
	if len(values) <= limit {
		return over
	}
	byHash := slices.Clone(values) // ascending, so equal hashes keep the order of names
	slices.SortStableFunc(byHash, func(a, b string) int {
		x, y := slicing.Hash(a), slicing.Hash(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, x := range byHash[limit:] {
		over[x] = true
	}
	return over
}

// Append appends the counts to a checkpoint.
func (h *Counts) Append(dst []byte) []byte {
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, h.epoch), h.More)
	for _, counts := range []map[string]int64{h.Kept, h.Pooled} {
		dst = binenc.AppendUvarint(dst, uint64(len(counts)))
		for _, value := range slices.Sorted(maps.Keys(counts)) {
			dst = binenc.AppendUvarint(binenc.AppendString(dst, value), uint64(counts[value]))
		}
	}
	return dst
}

// Restore reads what Append wrote.
func (h *Counts) Restore(r *binenc.Reader) {
	h.epoch, h.More = r.Varint(), r.Varint()
	for _, counts := range []map[string]int64{h.Kept, h.Pooled} {
		for range r.Count(2, binenc.MaxItems) {
			value, n := r.String(binenc.MaxName), r.Uvarint()
			if n > math.MaxInt64/4 {
				r.Failf("value %q has %d rows", value, n)
			}
			if r.Err() != nil {
				return
			}
			counts[value] = int64(n)
		}
	}
}
