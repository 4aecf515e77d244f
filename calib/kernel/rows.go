package kernel

import "fmt"

// LogitRows summarises len(rows) rows of k float32 logits at temperature t, z row-major len(rows)×k: the fields of
// rows[i] are those of z_i/t, each to a relative 1e-6 (LSE to 1e-6 of the larger of |Max| and ln S). The mean logit
// that a temperature's gradient needs comes with it:
//
//	E_p[z/t] = Σ_j p_j z_j/t = LSE - Entropy
//
// If e is not nil it takes len(rows)×k values in [0,1], e_ij = exp((z_ij - max z_i)/t), exactly 1 at the maximum, with
//
//	p_ij = float64(e[i*k+j]) · rows[i].Scale
//
// Values of e below 2^-126 may be 0. A row with a NaN or an infinity has OK = false, and its part of e is undefined.
// t must be positive and finite. e must not overlap z. It panics on wrong lengths and on t ≤ 0. Nothing is allocated.
//
// A row goes through float64, some ten times slower, if |max z|/t is above 9·10^4, or if its other classes' Σe is
// below K·2^-104 (they are 70 nats and more behind): float32 does not hold those. So do all rows if t is not in
// about [2^-19, 2^20].
func LogitRows(rows []Row, e, z []float32, k int, t float64) {
	check(len(rows), len(z), k)
	if e != nil && len(e) != len(z) {
		panic(fmt.Sprintf("kernel: len(e) = %d, want %d", len(e), len(z)))
	}
	if !(t > 0) {
		panic(fmt.Sprintf("kernel: temperature %g, want above 0", t))
	}
	var p params
	if len(rows) == 0 {
		return
	}
	if !p.setup(k, t) {
		for i := range rows {
			slowRow(&rows[i], part(e, i*k, (i+1)*k), z[i*k:(i+1)*k], t)
		}
		return
	}
	var a sums
	if k >= columnK {
		a.start(z, k)
	}
	for at := 0; at < len(rows); {
		n, bad := a.blocks(rows[at:], part(e, at*k, len(z)), z[at*k:], k, &p)
		last := at + (n-1)/lanes*lanes
		for i := last; bad != 0; i, bad = i+1, bad>>1 {
			if bad&1 != 0 {
				slowRow(&rows[i], part(e, i*k, (i+1)*k), z[i*k:(i+1)*k], t)
			}
		}
		at += n
	}
}

func check(n, scores, k int) {
	if k < 1 || scores != n*k {
		panic(fmt.Sprintf("kernel: %d scores, want %d rows of %d", scores, n, k))
	}
}

// part is v[from:to], nil for nil.
func part(v []float32, from, to int) []float32 {
	if v == nil {
		return nil
	}
	return v[from:to]
}

// oneBlock makes up to 16 rows; a bit of bad is a row that the float64 path must do.
func (a *sums) oneBlock(rows []Row, e, z []float32, k int, p *params) (n int, bad uint32) {
	n = min(lanes, len(rows))
	return n, a.block(rows[:n], part(e, 0, n*k), z, k, p)
}

// blockGo is block in plain Go.
func (a *sums) blockGo(rows []Row, e, z []float32, k int, p *params) (bad uint32) {
	g := goSums{sums: a}
	for i := range rows {
		g.rowSums(i, part(e, i*k, (i+1)*k), z[i*k:(i+1)*k], p)
		if !a.finish(&rows[i], i, p) {
			bad |= 1 << i
		}
	}
	return bad
}
