package fixedpoint

import "slices"

// NoKey is the key of a listed value whose bin is not certain.
const NoKey = 1<<32 - 1

// FindKeys fills l.Key and l.Sum of all listed values. Rows and Scale of r belong to the rows of l. With p = v·Scale,
// rounded and at most 1, and x = p·m:
//
//	Key = Class·(m+1) + ⌊x⌋,  Sum = Round(p)
//
// but NoKey where x is within slack of an integer below m; up to m, p is in the last bin. 0 < slack < 1/4, or 1 for
// NoKey everywhere.
func (l *Large) FindKeys(r *ScaledRows, m int, slack float64) {
	const lanes = 8 // may be written beyond the end
	n := len(l.V)
	l.Key, l.Sum = slices.Grow(l.Key[:0], n+lanes)[:n], slices.Grow(l.Sum[:0], n+lanes)[:n]
	l.V, l.Class = slices.Grow(l.V, lanes), slices.Grow(l.Class, lanes)
	if n > 0 && len(r.Scale) >= len(l.End) {
		findKeys(l, r.Scale, m, slack)
	}
}

func findKeysGo(l *Large, scales []float64, m int, slack float64) {
	fm, x := float64(m), 0
	last := fm - 2*slack
	for i, end := range l.End {
		for ; x < end; x++ {
			p := min(float64(l.V[x])*scales[i], 1)
			l.Sum[x] = Round(p)
			at := min(p*fm, last)
			bin := uint32(at)
			l.Key[x] = NoKey
			if f := at - float64(bin); f > slack && f < 1-slack {
				l.Key[x] = l.Class[x]*uint32(m+1) + bin
			}
		}
	}
}

// LabelRows are labels y and their probabilities p by row, and the rows that are meant.
type LabelRows struct {
	Y    []int32
	P    []float64
	Rows []int32
}

// Keys writes the keys of the labels' probabilities to dst, as FindKeys does: y·(m+1) + ⌊p·m⌋, or NoKey.
func (l *LabelRows) Keys(dst []uint32, m int, slack float64) {
	if len(l.Rows) > 0 {
		l.keys(dst[:len(l.Rows)], m, slack)
	}
}

func (l *LabelRows) keysGo(dst []uint32, m int, slack float64) {
	fm := float64(m)
	last := fm - 2*slack
	for x, i := range l.Rows {
		at := min(l.P[i]*fm, last)
		bin := uint32(at)
		dst[x] = NoKey
		if f := at - float64(bin); f > slack && f < 1-slack {
			dst[x] = uint32(l.Y[i])*uint32(m+1) + bin
		}
	}
}

// AddEntries adds {1, one, sums_x, 0} to the entry of each key, entries[places[key]-1], up to the first key that is
// NoKey or has place 0, and returns how many keys come before that. All other keys and places must be in range.
func AddEntries(entries [][4]int64, places, keys []uint32, sums []int64, one int64) int {
	if len(keys) == 0 || len(places) == 0 || len(entries) == 0 {
		return 0
	}
	return addEntries(entries, places, keys, sums[:len(keys)], one)
}

func addEntriesGo(entries [][4]int64, places, keys []uint32, sums []int64, one int64) int {
	for x, key := range keys {
		if key == NoKey || places[key] == 0 {
			return x
		}
		e := &entries[places[key]-1]
		e[0]++
		e[1] += one
		e[2] += sums[x]
	}
	return len(keys)
}

// CellRows are what a grid adds by row: the key, with 1 more where a bit of Hit is in the outcome that is asked for,
// and Σw, Σ w·c, Σ w·c².
type CellRows struct {
	Key, Hit   []uint16
	W, WC, WC2 []int64
}

// AddCells adds {1, W, WC, WC2} of rows i to entries[places[key]-1], key = Key_i + Hit_i AND outcome, up to the first
// row whose key has place 0, and returns how many rows come before that. All other places must be in range.
func AddCells(entries [][4]int64, places []uint16, c *CellRows, rows []int32, outcome uint16) int {
	if len(rows) == 0 || len(places) == 0 || len(entries) == 0 {
		return 0
	}
	return addCells(entries, places, c, rows, outcome)
}

func addCellsGo(entries [][4]int64, places []uint16, c *CellRows, rows []int32, outcome uint16) int {
	for x, i := range rows {
		place := places[c.Key[i]+c.Hit[i]&outcome]
		if place == 0 {
			return x
		}
		e := &entries[place-1]
		e[0]++
		e[1] += c.W[i]
		e[2] += c.WC[i]
		e[3] += c.WC2[i]
	}
	return len(rows)
}
