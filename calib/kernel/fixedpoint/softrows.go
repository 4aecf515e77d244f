package fixedpoint

// OutcomeSums are SoftSums with u of the wrong and of the right rows apart.
type OutcomeSums struct{ Wrong, Right, UC, UC2 []int64 }

// Of returns the sums that rows of one outcome go to.
func (s *OutcomeSums) Of(right bool) SoftSums {
	if right {
		return SoftSums{s.Right, s.UC, s.UC2}
	}
	return SoftSums{s.Wrong, s.UC, s.UC2}
}

// SoftRows are rows of weight 1: ρ and the confidence of each, and 0xFF for the right ones, 0 for the others.
type SoftRows struct {
	Rho, C []float64
	Hit    []uint8
}

// AddRows is SoftSums.Add of all rows, as many as Rho has.
func (s *OutcomeSums) AddRows(g, e []float64, r SoftRows) {
	n := len(r.Rho)
	if n == 0 {
		return
	}
	r.C, r.Hit = r.C[:n], r.Hit[:n]
	if addSoftRows(s, g, r) {
		return
	}
	for i, rho := range r.Rho {
		s.Of(r.Hit[i] != 0).Add(g, e, SoftRow{rho, r.C[i], 1})
	}
}

// takeOffMagic adds raw sums, less the bits of the magic number that each contains once for every row.
func (s *OutcomeSums) takeOffMagic(raw *[4][16]int64, hit []uint8) {
	wrong, right, uc, uc2 := s.Wrong[:16], s.Right[:16], s.UC[:16], s.UC2[:16]
	correct := int64(0)
	for _, h := range hit {
		correct += int64(h & 1)
	}
	all := int64(len(hit)) * magicBits
	for j := range raw[0] {
		hits := raw[1][j] - correct*magicBits
		right[j] += hits
		wrong[j] += raw[0][j] - all - hits
		uc[j] += raw[2][j] - all
		uc2[j] += raw[3][j] - all
	}
}
