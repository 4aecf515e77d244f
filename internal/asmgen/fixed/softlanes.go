package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// addSoftLanes512 is addSoftRows512 with a row per lane, 8 at once: no powers are made under masks, one division does
// for 8 rows and no sum goes across lanes. That costs 512 sums in memory, which the caller adds up.
func addSoftLanes512() {
	TEXT("addSoftLanes512", NOSPLIT, "func(raw *int64, f, rho, c *float64, right *uint8, rows int)")
	Pragma("noescape")
	Doc("addSoftLanes512 adds to raw, of 4×16×8, what addSoftRows512 sums, apart for rows i mod 8. right is 1 for " +
		"correct rows.")
	raw, f := Load(Param("raw"), GP64()), Load(Param("f"), GP64())
	rho, c := Load(Param("rho"), GP64()), Load(Param("c"), GP64())
	right, rows := Load(Param("right"), GP64()), Load(Param("rows"), GP64())
	one, magic := ZMM(), ZMM()
	VMOVUPD(unitMem, one)
	VMOVUPD(magicMem, magic)
	mask := GP32()
	lanes, correct := K(), K()

	Label("rows")
	someLanes(rows, mask, lanes)
	hit := XMM()
	VMOVDQU8_Z(Mem{Base: right}, lanes, hit)
	VPTESTMB(hit, hit, correct)
	r, cc := ZMM(), ZMM()
	VMOVUPD_Z(Mem{Base: rho}, lanes, r)
	VMOVUPD_Z(Mem{Base: c}, lanes, cc)
	inv, e := softMemberships(f, r, one)
	for j, u := range e {
		q, t := ZMM(), ZMM()
		at := func(sum int) Mem { return Mem{Base: raw, Disp: 64 * (16*sum + j)} }
		VMULPD(inv, u, u)
		VMINPD(one, u, u)
		VADDPD(magic, u, q)
		VMOVDQU64(at(1), t)
		VPADDQ(q, t, correct, t)
		VMOVDQU64(t, at(1))
		for _, sum := range []int{0, 2, 3} {
			if sum > 0 {
				VMULPD(cc, u, u)
				VADDPD(magic, u, q)
			}
			VMOVDQU64(at(sum), t)
			VPADDQ(q, t, lanes, t)
			VMOVDQU64(t, at(sum))
		}
	}
	ADDQ(Imm(8), right)
	ADDQ(Imm(64), rho)
	ADDQ(Imm(64), c)
	SUBQ(Imm(8), rows)
	JG(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

// softMemberships returns e_j = ρ^j·g_j of 16 bins and 1/Σ e_j, in the order of addSoftGo.
func softMemberships(g Register, rho, one VecVirtual) (inv VecVirtual, e [16]VecVirtual) {
	mul := func(a, b VecVirtual) VecVirtual {
		v := ZMM()
		VMULPD(a, b, v)
		return v
	}
	r2 := mul(rho, rho)
	r4 := mul(r2, r2)
	r8 := mul(r4, r4)
	r3 := mul(r2, rho)
	p := [8]VecVirtual{one, rho, r2, r3, r4, mul(r4, rho), mul(r4, r2), mul(r4, r3)}
	var sum [8]VecVirtual
	for l := range p {
		for h := range 2 {
			j, x := l+8*h, p[l]
			if h == 1 {
				x = mul(r8, x)
			}
			e[j] = ZMM()
			VMULPD_BCST(Mem{Base: g, Disp: 8 * j}, x, e[j])
		}
		sum[l] = ZMM()
		VADDPD(e[l+8], e[l], sum[l])
	}
	for half := 4; half > 0; half /= 2 {
		for l := range half {
			VADDPD(sum[l+half], sum[l], sum[l])
		}
	}
	inv = ZMM()
	VDIVPD(sum[0], one, inv)
	return inv, e
}
