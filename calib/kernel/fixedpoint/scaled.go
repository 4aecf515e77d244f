package fixedpoint

import (
	"math"
	"slices"
)

// Slack is how far a product may exceed 1: a probability is float64(v)·scale, rounded twice.
const Slack = 0x1p-20

// Padded returns n rounded up to whole vectors.
func Padded(n int) int { return (n + 7) &^ 7 }

// listSlack is how far beyond whole vectors of 8 the lists may be written.
const listSlack = 16

// limits returns the bits of the largest v that AddScaledRows takes, and of the largest that is small.
func limits(scale, edge float64) (limit, small uint32) {
	inv := 1 / scale
	return math.Float32bits(float32((1 + Slack) * inv)), math.Float32bits(float32(min(edge*inv, math.MaxFloat32)))
}

func rowLimitsGo(edges, most []uint32, scales []float64, edge float64) {
	for i, s := range scales {
		most[i], edges[i] = limits(s, edge)
	}
}

// ScaledRows lists rows of K values v (row-major), and what makes probabilities of them: p_ik = v_ik·Scale.
type ScaledRows struct {
	V     []float32
	K     int
	Rows  []int32   // which rows of V
	Scale []float64 // of each of Rows, positive

	edge, limit []uint32
}

// Large lists values: Class and V of each, where the list of each row ends, and 1 for rows that have a 0.
type Large struct {
	Class []uint32
	V     []float32
	End   []int
	Zero  []uint8

	Key []uint32 // by FindKeys
	Sum []int64
}

// Reset empties the lists.
func (l *Large) Reset() {
	l.Class, l.V, l.End, l.Zero = l.Class[:0], l.V[:0], l.End[:0], l.Zero[:0]
}

// AddScaledRows adds the rows from r.Rows[at] on, of probabilities p_k = v_k·scale: the small ones go to dense, the
// others to the end of l, as v, by row and then by class:
//
//	v_k <= float32(edge·(1/scale)):  dense_k += RoundProduct(v_k, scale)
//	else:                            Class = k, V = v_k
//
// It returns the number of the first row at which it could not go on, len(r.Rows) if there was none: one with a v_k
// that is not in [+0, (1+Slack)·(1/scale)], the bound rounded to float32; -0 is outside. That row has changed nothing.
// 0 < scale, 0 < edge <= 1.
// dense has at least Padded(K) values; it panics on less.
func AddScaledRows(dense []int64, l *Large, r *ScaledRows, at int, edge float64) int {
	n := len(r.Rows)
	if len(dense) < Padded(r.K) {
		panic("fixedpoint: sums shorter than a row")
	}
	if at == n {
		return n
	}
	r.limit, r.edge = slices.Grow(r.limit[:0], n)[:n], slices.Grow(r.edge[:0], n)[:n]
	rowLimits(r.edge, r.limit, r.Scale[:n], edge)
	for _, i := range r.Rows {
		if row := int(i); row < 0 || (row+1)*r.K > len(r.V) {
			panic("fixedpoint: no such row")
		}
	}
	used, rows := len(l.V), len(l.End)
	room := used + (n-at)*r.K + listSlack
	l.Class, l.V = slices.Grow(l.Class, room-used)[:room], slices.Grow(l.V, room-used)[:room]
	l.End, l.Zero = slices.Grow(l.End, n-at)[:rows+n-at], slices.Grow(l.Zero, n-at)[:rows+n-at]
	done := addScaledRows(dense, &Large{Class: l.Class[used:], V: l.V[used:], End: l.End[rows:], Zero: l.Zero[rows:]},
		r, at)
	l.End, l.Zero = l.End[:rows+done], l.Zero[:rows+done]
	ends := l.End[rows:]
	for i := range ends {
		ends[i] += used
	}
	if done > 0 {
		used = ends[done-1]
	}
	l.Class, l.V = l.Class[:used], l.V[:used]
	if at += done; at < n {
		SubScaled(dense, r.row(at), r.Scale[at], edge)
	}
	return at
}

func (r *ScaledRows) row(i int) []float32 {
	at := int(r.Rows[i]) * r.K
	return r.V[at : at+r.K]
}

// scaledRow is a row, or its end: v from class base on, the factor, and the bits of the largest v that is small and of
// the largest that is in the range.
type scaledRow struct {
	v           []float32
	base        int
	scale       float64
	edge, limit uint32
}

// list is where large values are listed.
type list struct {
	class []uint32
	v     []float32
}

func (l list) from(i int) list { return list{l.class[i:], l.v[i:]} }

// addScaledEach goes row by row, up to the first that is bad, which it has added too.
func addScaledEach(dense []int64, to *Large, r *ScaledRows, at int) (done int) {
	listed, all := 0, list{to.Class, to.V}
	for i := range r.Rows[at:] {
		row := scaledRow{v: r.row(at + i), scale: r.Scale[at+i], edge: r.edge[at+i], limit: r.limit[at+i]}
		n, zeros, bad := addScaled(dense, all.from(listed), &row)
		if bad {
			return i
		}
		listed += n
		to.End[i], to.Zero[i] = listed, 0
		if zeros {
			to.Zero[i] = 1
		}
	}
	return len(r.Rows) - at
}

// addScaledGo adds one row, and reports whether it is outside the range. The bits of non-negative floats are in order,
// those of negative ones and NaN above.
func addScaledGo(dense []int64, to list, r *scaledRow) (listed int, zero, bad bool) {
	dense = dense[:len(r.v)]
	for k, x := range r.v {
		bits := math.Float32bits(x)
		if bits <= r.edge {
			dense[k] += RoundProduct(x, r.scale)
			zero = zero || bits == 0
			continue
		}
		to.class[listed], to.v[listed] = uint32(r.base+k), x
		listed++
		bad = bad || bits > r.limit
	}
	return listed, zero, bad
}

// SubScaled takes off dense what AddScaledRows added for the row.
func SubScaled(dense []int64, v []float32, scale, edge float64) {
	_, e := limits(scale, edge)
	for k, x := range v {
		if math.Float32bits(x) <= e {
			dense[k] -= RoundProduct(x, scale)
		}
	}
}
