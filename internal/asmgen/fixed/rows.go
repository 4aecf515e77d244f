package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// someLanes has those of 8 lanes that have rows where n are left: all but at the end.
func someLanes(n, mask, lanes Register) {
	MOVL(U32(0xff), mask)
	CMPQ(n, Imm(8))
	JGE(LabelRef("whole"))
	MOVL(U32(0xffffffff), mask)
	SHLXL(n.(GPVirtual).As32(), mask, mask)
	NOTL(mask)
	Label("whole")
	KMOVB(mask, lanes)
}

// eights loops over n rows by eights: lanes has those that there are, i the first of them.
func eights(n Register, body func(i Register, lanes Register)) {
	i, mask, lanes := GP64(), GP32(), K()
	XORQ(i, i)
	Label("rows")
	someLanes(n, mask, lanes)
	body(i, lanes)
	ADDQ(Imm(8), i)
	SUBQ(Imm(8), n)
	JG(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

func limits512() {
	largest := constant("largestFloat32", 8, math.Float64bits(math.MaxFloat32))
	TEXT("limits512", NOSPLIT, "func(edge, limit *uint32, scale *float64, n int, least, most float64)")
	Pragma("noescape")
	Doc("limits512 is limits of n rows by AVX-512: least is the edge, most what no product exceeds.")
	edge, limit, scale, n := Load(Param("edge"), GP64()), Load(Param("limit"), GP64()), Load(Param("scale"),
		GP64()), Load(Param("n"), GP64())
	one, least, most := ZMM(), ZMM(), ZMM()
	VMOVUPD(unitMem, one)
	VBROADCASTSD(NewParamAddr("least", 32), least)
	VBROADCASTSD(NewParamAddr("most", 40), most)
	eights(n, func(i, lanes Register) {
		inv, x, y := ZMM(), ZMM(), YMM()
		VMOVUPD_Z(Mem{Base: scale, Index: i, Scale: 8}, lanes, inv)
		VDIVPD(inv, one, inv)
		VMULPD(most, inv, x)
		VCVTPD2PS(x, y)
		VMOVUPS(y, lanes, Mem{Base: limit, Index: i, Scale: 4})
		VMULPD(least, inv, x)
		VMINPD(largest, x, x)
		VCVTPD2PS(x, y)
		VMOVUPS(y, lanes, Mem{Base: edge, Index: i, Scale: 4})
	})
}

func labelKeys512() {
	TEXT("labelKeys512", NOSPLIT,
		"func(key *uint32, y *int32, p *float64, rows *int32, n int, m, last, slack, rest float64, step uint64)")
	Pragma("noescape")
	Doc("labelKeys512 is labelKeysGo by AVX-512; last is m - 2·slack, rest 1 - slack and step m+1.")
	key, y, p := Load(Param("key"), GP64()), Load(Param("y"), GP64()), Load(Param("p"), GP64())
	rows, n := Load(Param("rows"), GP64()), Load(Param("n"), GP64())
	m, last, slack, rest, step := ZMM(), ZMM(), ZMM(), ZMM(), YMM()
	for i, z := range []VecVirtual{m, last, slack, rest} {
		VBROADCASTSD(NewParamAddr([]string{"m", "last", "slack", "rest"}[i], 40+8*i), z)
	}
	stepAt := GP64()
	Load(Param("step"), stepAt)
	VPBROADCASTD(stepAt.(GPVirtual).As32(), step)
	ones := YMM()
	VPTERNLOGD(Imm(0xff), ones, ones, ones)
	eights(n, func(i, lanes Register) {
		at, x, whole, class, bin := YMM(), ZMM(), ZMM(), YMM(), YMM()
		todo, sure := K(), K()
		VMOVDQU32_Z(Mem{Base: rows, Index: i, Scale: 4}, lanes, at)
		KMOVB(lanes, todo)
		VXORPD(x, x, x)
		VGATHERDPD(Mem{Base: p, Index: at, Scale: 8}, todo, x)
		KMOVB(lanes, todo)
		VPXORD(class, class, class)
		VPGATHERDD(Mem{Base: y, Index: at, Scale: 4}, todo, class)
		VMULPD(m, x, x)
		VMINPD(last, x, x)
		VRNDSCALEPD(Imm(3), x, whole)
		VCVTTPD2DQ(x, bin)
		VSUBPD(whole, x, x)
		VCMPPD(Imm(14), slack, x, sure)
		VCMPPD(Imm(1), rest, x, sure, sure)
		VPMULLD(step, class, class)
		VPADDD(bin, class, class)
		KNOTB(sure, sure)
		VMOVDQA32(ones, sure, class)
		VMOVDQU32(class, lanes, Mem{Base: key, Index: i, Scale: 4})
	})
}

func lagCells512() {
	exact, mantissa, one := constant("lagExact", 8, 1<<53), constant("lagMantissa", 8, 1<<52-1), constant("lagOne", 8,
		1)
	TEXT("lagCells512", NOSPLIT, "func(cell *uint16, lag *int64, n int, unit int64, mantissas *int64, base int)")
	Pragma("noescape")
	Doc("lagCells512 is LagCells by AVX-512.")
	cell, lag, n := Load(Param("cell"), GP64()), Load(Param("lag"), GP64()), Load(Param("n"), GP64())
	table := Load(Param("mantissas"), GP64())
	unit, base, zero := ZMM(), ZMM(), ZMM()
	VPBROADCASTQ(NewParamAddr("unit", 24), unit)
	VPBROADCASTQ(NewParamAddr("base", 40), base)
	VPXORQ(zero, zero, zero)
	var at [4]VecVirtual
	for q := range at {
		at[q] = ZMM()
		VPBROADCASTQ(Mem{Base: table, Disp: 8 * q}, at[q])
	}
	eights(n, func(i, lanes Register) {
		x, b, c, out, k := ZMM(), ZMM(), ZMM(), XMM(), K()
		VMOVDQU64_Z(Mem{Base: lag, Index: i, Scale: 8}, lanes, x)
		VCVTQQ2PD(x, b)
		VPSRLQ(Imm(52), b, c)
		VPSLLQ(Imm(2), c, c)
		VPSUBQ(base, c, c)
		VPANDQ(mantissa, b, b)
		for _, t := range at {
			VPCMPQ(Imm(5), t, b, k) // not below
			VPADDQ(one, c, k, c)
		}
		short := ZMM()
		VPMAXSQ(zero, x, short)
		VPMINSQ(one, short, short)
		VPCMPQ(Imm(1), unit, x, k) // below
		VMOVDQA64(short, k, c)
		VPCMPQ(Imm(5), exact, x, k)
		VPTERNLOGQ(Imm(0xff), c, c, k, c)
		VPMOVQW(c, out)
		VMOVDQU16(out, lanes, Mem{Base: cell, Index: i, Scale: 2})
	})
}
