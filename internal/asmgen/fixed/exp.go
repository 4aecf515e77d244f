package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// ratios512 takes multiples of 8 rows. The steps are those of Exp.
func ratios512() {
	f64 := func(name string, v float64) Mem { return constant(name, 8, math.Float64bits(v)) }
	scaleMem, wholeMem := f64("expScale", 0x1.71547652b82fep+05), f64("expWhole", 0x1.8p52)
	hiMem, loMem := f64("expHi", 0x1.62e42ffp-06), f64("expLo", -0x1.718432a1b0e26p-40)
	halfMem, sixthMem := f64("expHalf", .5), f64("expSixth", 1.0/6)
	c4Mem, c5Mem, c6Mem := f64("exp4", 1.0/24), f64("exp5", 1.0/120), f64("exp6", 1.0/720)
	maskMem := constant("expMask", 8, 31)

	TEXT("ratios512", NOSPLIT, "func(dst, c *float64, n int, rate, first float64, table *float64)")
	Pragma("noescape")
	Doc("ratios512 is ratiosGo by AVX-512 for a multiple of 8 rows.")
	dst, c, n, table := Load(Param("dst"), GP64()), Load(Param("c"), GP64()), Load(Param("n"),
		GP64()), Load(Param("table"), GP64())
	rate, first, whole := ZMM(), ZMM(), ZMM()
	VBROADCASTSD(NewParamAddr("rate", 24), rate)
	VBROADCASTSD(NewParamAddr("first", 32), first)
	VMOVUPD(wholeMem, whole)
	i := GP64()
	XORQ(i, i)
	Label("loop")
	x, s, kf, r, t := ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VMOVUPD(Mem{Base: c, Index: i, Scale: 8}, x)
	VSUBPD(first, x, x)
	VMULPD(rate, x, x)
	VMULPD(scaleMem, x, s)
	VADDPD(whole, s, s)
	VSUBPD(whole, s, kf)
	VPSUBQ(whole, s, s) // k
	VMULPD(hiMem, kf, t)
	VSUBPD(t, x, r)
	VMULPD(loMem, kf, t)
	VSUBPD(t, r, r)
	rr, low, high := ZMM(), ZMM(), ZMM()
	VMULPD(r, r, rr)
	VMULPD(sixthMem, r, low)
	VADDPD(halfMem, low, low)
	VMULPD(c5Mem, r, high)
	VADDPD(c4Mem, high, high)
	VMULPD(c6Mem, rr, t)
	VADDPD(t, high, high)
	VMULPD(rr, high, high)
	VADDPD(high, low, low)
	VMULPD(rr, low, low)
	VADDPD(low, r, r) // q
	at, all := ZMM(), K()
	VPANDQ(maskMem, s, at)
	KXNORB(all, all, all)
	VXORPD(t, t, t)
	VGATHERQPD(Mem{Base: table, Index: at, Scale: 8}, all, t)
	VMULPD(r, t, r)
	VADDPD(r, t, t)
	VPSRAQ(Imm(5), s, s)
	VPSLLQ(Imm(52), s, s)
	VPADDQ(s, t, t)
	VMOVUPD(t, Mem{Base: dst, Index: i, Scale: 8})
	ADDQ(Imm(8), i)
	CMPQ(i, n)
	JL(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
