package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kernel's probSums; top is at 0.
const (
	offTop2, offTopArg         = 64, 128
	offProbS, offProbH, offP2s = 192, 320, 448
)

// lnSingle are the coefficients of ln(1+f) = f·(1 + f·Σ c_i f^i) from the highest degree, the last one 1.
var lnSingle = []string{"lnf8", "lnf7", "lnf6", "lnf5", "lnf4", "lnf3", "lnf2", "lnf1", "one"}

func probConstants() {
	for i, c := range []float32{
		0x1.65bc38p-4, -0x1.250168p-3, 0x1.3185b2p-3, -0x1.535da8p-3, 0x1.98d2c0p-3, -0x1.000498p-2, 0x1.5556f4p-2,
		-0x1.fffffap-2,
	} {
		f32(lnSingle[i], c)
	}
	f32("probFloor", 0x1p-120)
	f32("ln2f", 0x1.62e430p-1)
	repeat("sqrtHalf32", 16, 4, 0x3f3504f3)
	repeat("exponent32", 16, 4, 0xff800000)
	repeat("int16", 16, 4, 16)
	f64("int2fBiased", 0x1p52+1024)
	repeat("sqrtHalfLow", 8, 8, (1<<64)+0x3fe6a09e667f3bcd-1024<<52)
	repeat("exponent1024", 8, 8, 1024<<52)
	f64("probSumSlack", 0.05)
	f64("probSumExact", 0x1p-20)
	repeat("abs64", 8, 8, math.MaxInt64)
	m := GLOBL("iota", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)))
	}
	table["iota"] = m
	m = GLOBL("headMask", RODATA|NOPTR)
	for i := range 32 {
		v := uint32(0)
		if i < 16 {
			v = math.MaxUint32
		}
		DATA(4*i, U32(v))
	}
	table["headMask"] = m
}

// problane are the lanes of a row's sums of probabilities, one register's worth; top and second are bits.
type problane struct{ top, second, arg, h, p2 reg.VecVirtual }

func (g *gen) newProbs() problane {
	l := problane{g.vec(), g.vec(), g.vec(), g.vec(), g.vec()}
	g.zero(l.top)
	g.zero(l.second)
	g.zero(l.arg)
	g.resetProbs(l)
	return l
}

func (g *gen) resetProbs(l problane) {
	g.zero(l.h)
	move(g.c("sumP2Start"), l.p2)
}

// probPreload keeps the constants of prob in registers.
func (g *gen) probPreload() {
	g.preload(lnSingle...)
	g.preload("probFloor", "ln2f", "sqrtHalf32", "exponent32", "sumP2Start")
}

// prob adds the probabilities x, whose indices are given, to l. It leaves in x those above the floor, for Σq.
func (g *gen) prob(l problane, x reg.VecVirtual, index Op) {
	low := g.vec()
	if g.wide {
		larger, keep := K(), K()
		VPCMPUD(Imm(6), l.top, x, larger)
		VMOVDQA32(index, larger, l.arg)
		VPMINUD(x, l.top, low)
		VPMAXUD(low, l.second, l.second)
		VPMAXUD(x, l.top, l.top)
		VPCMPD(Imm(6), g.c("probFloor"), x, keep)
		VMOVDQA32_Z(x, keep, x)
	} else {
		VPCMPGTD(l.top, x, low)
		VBLENDVPS(low, index, l.arg, l.arg)
		VPMINUD(x, l.top, low)
		VPMAXUD(low, l.second, l.second)
		VPMAXUD(x, l.top, l.top)
		VPCMPGTD(g.c("probFloor"), x, low)
		VPAND(low, x, x)
	}
	VFNMADD231PS(g.lnSingle(x), x, l.h)
	VFMADD231PS(x, x, l.p2)
}

// lnSingle returns ln x, as kernel's ln32: some finite number for 0.
func (g *gen) lnSingle(x reg.VecVirtual) reg.VecVirtual {
	k, f, p := g.vec(), g.vec(), g.vec()
	VPSUBD(g.c("sqrtHalf32"), x, k)
	if g.wide {
		VPANDD(g.c("exponent32"), k, f)
	} else {
		VPAND(g.c("exponent32"), k, f)
	}
	VPSRAD(Imm(23), k, k)
	VPSUBD(f, x, f)
	VSUBPS(g.c("one"), f, f)
	VCVTDQ2PS(k, k)
	move(g.c(lnSingle[0]), p)
	for _, n := range lnSingle[1:] {
		VFMADD213PS(g.c(n), f, p)
	}
	VMULPS(f, p, p)
	VFMADD231PS(g.c("ln2f"), k, p)
	return p
}
