package fixedpoint

// SoftSums are the sums of some rows by soft bin: the memberships u, u·c and u·c².
type SoftSums struct{ U, UC, UC2 []int64 }

// SoftRow is a row of confidence C and weight W whose membership of bin j is proportional to Rho^j.
type SoftRow struct{ Rho, C, W float64 }

// Add adds a row to the sums of n = len(g) bins, with memberships proportional to ρ^j·g_j:
//
//	e_j = ρ^j·g_j,  u_j = min(e_j / Σ e, 1)·w
//	U_j += Round(u_j),  UC_j += Round(u_j·c),  UC2_j += Round(u_j·c·c)
//
// ρ^j is ρ^(8⌊j/8⌋)·(ρ^4 or 1)·(ρ^2 or 1)·(ρ or 1) by repeated squaring. n is a multiple of 8; bins of g = 0 get
// nothing. e is scratch. 0 <= c <= 1, 0 < w < Limit, ρ > 0, and all e_j and their sum are finite and the sum is not 0.
// It panics unless all sums and e have at least n values.
func (s SoftSums) Add(g, e []float64, r SoftRow) {
	n := len(g)
	if n == 0 || n%8 != 0 {
		panic("fixedpoint: bins are not a multiple of 8")
	}
	addSoft(SoftSums{s.U[:n], s.UC[:n], s.UC2[:n]}, g, e[:n], r)
}

func addSoftGo(sums SoftSums, g, e []float64, r SoftRow) {
	rho := r.Rho
	r2 := rho * rho
	r4 := r2 * r2
	r8 := r4 * r4
	r3 := rho * r2
	p := [8]float64{1, rho, r2, r3, r4, rho * r4, r2 * r4, r3 * r4}
	var sum [8]float64
	for at := 0; at < len(g); at += 8 {
		for l := range p {
			x := float64(g[at+l] * p[l])
			e[at+l] = x
			sum[l] += x
			p[l] *= r8
		}
	}
	// In the order in which the lanes of a vector are added.
	for half := 4; half > 0; half /= 2 {
		for l := range half {
			sum[l] += sum[l+half]
		}
	}
	inv := 1 / sum[0]
	for j, x := range e {
		u := min(float64(x*inv), 1) * r.W
		sums.U[j] += Round(u)
		u *= r.C
		sums.UC[j] += Round(u)
		u *= r.C
		sums.UC2[j] += Round(u)
	}
}
