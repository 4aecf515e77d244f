package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// addSoftRows512 keeps the sums of 16 bins in registers. It adds the bits as they are, each with those of the magic
// number, which the caller takes off.
func addSoftRows512() {
	TEXT("addSoftRows512", NOSPLIT, "func(raw *int64, f, rho, c *float64, right *uint8, rows int)")
	Pragma("noescape")
	Doc("addSoftRows512 writes to raw, of 4×16, the sums of the bits of u + magic by AVX-512: all, correct ones, " +
		"u·c, u·c².")
	raw, f := Load(Param("raw"), GP64()), Load(Param("f"), GP64())
	rho, c := Load(Param("rho"), GP64()), Load(Param("c"), GP64())
	right, rows := Load(Param("right"), GP64()), Load(Param("rows"), GP64())
	one, magic := ZMM(), ZMM()
	VMOVUPD(unitMem, one)
	VMOVUPD(magicMem, magic)
	var gauss [2]VecVirtual
	for h := range gauss {
		gauss[h] = ZMM()
		VMOVUPD(Mem{Base: f, Disp: 64 * h}, gauss[h])
	}
	var sums [4][2]VecVirtual
	for i := range sums {
		for h := range sums[i] {
			sums[i][h] = ZMM()
			VPXORQ(sums[i][h], sums[i][h], sums[i][h])
		}
	}
	var odd [3]Register
	lane := GP32()
	for i, mask := range []uint64{0xAA, 0xCC, 0xF0} {
		odd[i] = K()
		MOVL(U32(mask), lane)
		KMOVB(lane, odd[i])
	}
	correct := K()
	i := GP64()
	XORQ(i, i)

	Label("row")
	r, cc := ZMM(), ZMM()
	VBROADCASTSD(Mem{Base: rho, Index: i, Scale: 8}, r)
	VBROADCASTSD(Mem{Base: c, Index: i, Scale: 8}, cc)
	MOVBLZX(Mem{Base: right, Index: i, Scale: 1}, lane)
	KMOVB(lane, correct)
	p := ZMM()
	VMOVAPD(one, p)
	for _, k := range odd {
		VMULPD(r, p, k, p)
		VMULPD(r, r, r)
	}
	e := [2]VecVirtual{ZMM(), ZMM()}
	VMULPD(gauss[0], p, e[0])
	VMULPD(r, p, p)
	VMULPD(gauss[1], p, e[1])
	sum, half := ZMM(), YMM()
	VADDPD(e[1], e[0], sum)
	VEXTRACTF64X4(Imm(1), sum, half)
	VADDPD(half, sum.AsY(), half)
	inv := reciprocal(half, extract512)
	scale := ZMM()
	VBROADCASTSD(inv, scale)
	for h, e := range e {
		q := ZMM()
		VMULPD(scale, e, e)
		VMINPD(one, e, e)
		VADDPD(magic, e, q)
		VPADDQ(q, sums[0][h], sums[0][h])
		VPADDQ(q, sums[1][h], correct, sums[1][h])
		for j := 2; j < 4; j++ {
			VMULPD(cc, e, e)
			VADDPD(magic, e, q)
			VPADDQ(q, sums[j][h], sums[j][h])
		}
	}
	INCQ(i)
	CMPQ(i, rows)
	JL(LabelRef("row"))
	for j := range sums {
		for h := range sums[j] {
			VMOVDQU64(sums[j][h], Mem{Base: raw, Disp: 128*j + 64*h})
		}
	}
	VZEROUPPER()
	RET()
}
