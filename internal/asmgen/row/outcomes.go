package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kernel's Row.
const rowArg, rowLSE, rowConf, rowSecond, rowEntropy, rowSumP2, rowScale = 0, 16, 24, 32, 40, 48, 56

// outcomes512 gathers the fields of 8 rows at a time. Its pointers stay in the frame.
func outcomes512() {
	TEXT("outcomes512", NOSPLIT,
		"func(rows *byte, v, z *float32, y *int32, w *float64, k, n int, lnK float64, conf, margin, negent, p, nll, "+
			"brier *float64, hit *uint16)")
	Doc("outcomes512 is fillGo by AVX-512; it reads y and w, and writes all results, in whole vectors.")
	Pragma("noescape")
	g := newGen(isa{"512", true})
	rows, v, z := Load(Param("rows"), GP64()), Load(Param("v"), GP64()), Load(Param("z"), GP64())
	k, n := Load(Param("k"), GP64()), Load(Param("n"), GP64())
	offsets, classes, zero, lnK := g.vec(), g.vec(), g.vec(), g.vec()
	VMOVDQU64(table["rowOffsets"], offsets)
	VPBROADCASTQ(k, classes)
	VPMULLQ(table["lane64"], classes, classes) // where each row begins
	VBROADCASTSD(NewParamAddr("lnK", 56), lnK)
	g.zero(zero)
	step, i, mask := GP64(), GP64(), GP32()
	MOVQ(k, step)
	SHLQ(Imm(5), step) // bytes of 8 rows of scores
	XORQ(i, i)
	lanes := K()

	at := func(param string, scale uint8) Mem {
		return Mem{Base: Load(Param(param), GP64()), Index: i, Scale: scale}
	}
	field := func(off int) reg.VecVirtual {
		f, m := g.vec(), K()
		KMOVB(lanes, m)
		g.zero(f)
		VGATHERQPD(Mem{Base: rows, Index: offsets, Scale: 1, Disp: off}, m, f)
		return f
	}
	clamp := func(f reg.VecVirtual) {
		VMAXPD(zero, f, f)
		VMINPD(table["unit"], f, f)
	}

	Label("outcomes512_rows")
	MOVL(U32(0xff), mask)
	CMPQ(n, Imm(8))
	JGE(LabelRef("outcomes512_whole"))
	MOVL(U32(0xffffffff), mask)
	SHLXL(n.(reg.GPVirtual).As32(), mask, mask)
	NOTL(mask)
	Label("outcomes512_whole")
	KMOVB(mask, lanes)

	conf, margin := field(rowConf), field(rowSecond)
	VSUBPD(margin, conf, margin)
	clamp(conf)
	clamp(margin)
	VMOVUPD(conf, at("conf", 8))
	VMOVUPD(margin, at("margin", 8))
	negent := field(rowEntropy)
	VDIVPD(lnK, negent, negent)
	unit := g.vec()
	VMOVUPD(table["unit"], unit)
	VSUBPD(negent, unit, negent)
	clamp(negent)
	VMOVUPD(negent, at("negent", 8))

	label, place := g.vec(), g.vec()
	VPMOVSXDQ(at("y", 4), label)
	VPMAXSQ(zero, label, place)
	VPADDQ(classes, place, place)
	score := func(base reg.Register) reg.VecVirtual {
		y, f, m := YMM(), g.vec(), K()
		KMOVB(lanes, m)
		VPXORD(y, y, y)
		VGATHERQPS(Mem{Base: base, Index: place, Scale: 4}, m, y)
		VCVTPS2PD(y, f)
		return f
	}
	w := g.vec()
	VMOVUPD(at("w", 8), w)
	p := score(v)
	VMULPD(field(rowScale), p, p)
	VMINPD(unit, p, p)
	VMOVUPD(p, at("p", 8))
	nll := field(rowLSE)
	VSUBPD(score(z), nll, nll)
	VMULPD(w, nll, nll)
	VMOVUPD(nll, at("nll", 8))
	VADDPD(p, p, p)
	brier := field(rowSumP2)
	VSUBPD(p, brier, brier)
	VADDPD(unit, brier, brier)
	VMAXPD(zero, brier, brier)
	VMULPD(w, brier, brier)
	VMOVUPD(brier, at("brier", 8))
	arg, equal, hit := field(rowArg), K(), XMM()
	VPCMPEQQ(label, arg, equal)
	VPMOVM2W(equal, hit)
	VPSRLW(Imm(15), hit, hit)
	VMOVDQU16(hit, at("hit", 2))

	ADDQ(U32(8*rowBytes), rows)
	ADDQ(step, v)
	ADDQ(step, z)
	ADDQ(Imm(8), i)
	SUBQ(Imm(8), n)
	JG(LabelRef("outcomes512_rows"))
	VZEROUPPER()
	RET()
}

// outcomeConstants are those of outcomes512 only.
func outcomeConstants() {
	for _, c := range []struct {
		name string
		step int
	}{{"rowOffsets", rowBytes}, {"lane64", 1}} {
		m := GLOBL(c.name, RODATA|NOPTR)
		for i := range 8 {
			DATA(8*i, U64(c.step*i))
		}
		table[c.name] = m
	}
}
