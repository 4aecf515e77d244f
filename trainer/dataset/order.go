package dataset

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/trainer/data"
)

// order is what says which of a source's rows are the newest, and which repeat others.
type order struct {
	times   []int64 // empty where a part had none
	nanos   bool    // times are nanoseconds since 1970
	untimed bool
	keys    []uint64 // of the rows of an archive: rows of one key and time are one row
}

// newest is the last n rows of a set, all where n is 0, of a source with so many in all, in the order of time, of id
// where times are equal, and of their place. So the order of rows with ids does not depend on their files.
func (o *order) newest(set *data.Set, n, all int) *data.Set {
	rows := data.Rows(set.N())
	if set.Time != nil {
		keyed := len(o.keys) == all
		slices.SortStableFunc(rows, func(a, b int32) int {
			c := cmp.Compare(set.Time[a], set.Time[b])
			if c == 0 && keyed {
				c = cmp.Compare(o.keys[set.Index[a]], o.keys[set.Index[b]])
			}
			return c
		})
	}
	if n > 0 && len(rows) > n {
		rows = rows[len(rows)-n:]
	}
	return set.Select(rows)
}

// repeats marks the rows whose key and time were there before; nil where rows have none.
func (o *order) repeats(all int) []bool {
	if len(o.keys) != all || len(o.times) != all {
		return nil
	}
	rows := data.Rows(len(o.keys))
	slices.SortFunc(rows, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.keys[a], o.keys[b]), cmp.Compare(o.times[a], o.times[b]), cmp.Compare(a, b))
	})
	out := make([]bool, len(rows))
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		out[b] = o.keys[b] == o.keys[a] && o.times[b] == o.times[a] && o.keys[b] != 0
	}
	return out
}

// timeOf is the time range of a set of this source; nil where there are no times.
func (o *order) timeOf(set *data.Set) *timeRange {
	if set == nil || o.times == nil || set.N() == 0 {
		return nil
	}
	place := func(i int) int { return int(set.Index[i]) }
	lo := o.times[place(0)]
	hi := lo
	for i := range set.N() {
		t := o.times[place(i)]
		lo, hi = min(lo, t), max(hi, t)
	}
	format := func(t int64) string {
		if !o.nanos {
			return strconv.FormatInt(t, 10)
		}
		return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
	}
	return &timeRange{format(lo), format(hi)}
}

// Placed has the rows of a set that stays in files in their order there: they are read from one end to the other.
func Placed(s *data.Set) *data.Set {
	if s == nil || s.Stored == nil {
		return s
	}
	return s.Select(s.ByPlace(data.Rows(s.N())))
}
