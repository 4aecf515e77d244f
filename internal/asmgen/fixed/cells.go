package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The confidence grid, as in calib/kernel/fixedpoint.
const (
	gridCells = 3600
	tailFirst = 2*(gridCells-1) + 1
	tailCells = 64
	near      = 1e-9
	nearEdge  = 1.2e-6 // above kernel.EdgeTolerance
)

// cells512 takes multiples of 8 rows.
func cells512() {
	f64 := func(name string, v float64) Mem { return constant(name, 8, math.Float64bits(v)) }
	i32 := func(name string, v uint64) Mem { return constant(name, 4, v<<32|v) }
	scaleMem, nearMem, edgeMem := f64("gridScale", gridCells), f64("gridNear", near), f64("gridEdge", nearEdge)
	absMem := constant("gridAbs", 8, math.MaxInt64)
	tailBits, tailHalf := math.Float64bits(1.0/gridCells), math.Float64bits(math.Sqrt(0.5)/gridCells)
	tailMem, halfMem := constant("gridTail", 8, tailBits), constant("gridHalf", 8, tailHalf)
	oneMem, lastMem, firstMem := constant("gridOne", 8, 1), constant("gridLast", 8, tailCells-1), constant("gridFirst",
		8, tailFirst)
	certainMem := constant("gridCertain", 8, tailCells)
	one32Mem, last32Mem := i32("gridOne32", 1), i32("gridLast32", gridCells-1)

	TEXT("cells512", NOSPLIT, "func(keys *uint16, wc, wc2 *int64, near *uint8, c, w *float64, n int)")
	Pragma("noescape")
	Doc("cells512 is Cells by AVX-512 for a multiple of 8 rows, but for confidences near to a cell's edge, which it " +
		"lists in near, a bit each.")
	keys, wc, wc2 := Load(Param("keys"), GP64()), Load(Param("wc"), GP64()), Load(Param("wc2"), GP64())
	out, c, w, n := Load(Param("near"), GP64()), Load(Param("c"), GP64()), Load(Param("w"), GP64()), Load(Param("n"),
		GP64())
	magic, scale, one, zero := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVUPD(magicMem, magic)
	VMOVUPD(scaleMem, scale)
	VMOVUPD(unitMem, one)
	VPXORQ(zero, zero, zero)
	i, mask := GP64(), GP32()
	XORQ(i, i)
	Label("loop")
	x, p, q := ZMM(), ZMM(), ZMM()
	VMOVUPD(Mem{Base: c, Index: i, Scale: 8}, x)
	VMULPD(Mem{Base: w, Index: i, Scale: 8}, x, p)
	for _, dst := range []Register{wc, wc2} {
		VADDPD(magic, p, q)
		VPSUBQ(magic, q, q)
		VMOVDQU64(q, Mem{Base: dst, Index: i, Scale: 8})
		if dst == wc {
			VMULPD(x, p, p)
		}
	}
	// The cell between the edges, and whether an edge is near.
	whole, j := ZMM(), YMM()
	VMULPD(scale, x, p)
	VRNDSCALEPD(Imm(0), p, whole) // to nearest
	VSUBPD(whole, p, q)
	VPANDQ(absMem, q, q)
	below := K() // beside 1 the cell is that of the tail, whose edges are exact
	VCMPPD(Imm(4), scale, whole, below)
	VMULPD(edgeMem, whole, whole)
	VADDPD(nearMem, whole, whole)
	isNear := K()
	VCMPPD(Imm(2), whole, q, below, isNear) // at most
	KMOVB(isNear, mask)
	MOVB(mask.As8(), Mem{Base: out})
	VCVTTPD2DQ(p, j)
	cell := YMM()
	VPADDD(j, j, cell)
	VPADDD(one32Mem, cell, cell)
	// The cell of the tail, by half octaves of 1-c.
	d, octave, tail := ZMM(), ZMM(), ZMM()
	VSUBPD(x, one, d)
	VMOVDQU64(tailMem, octave)
	VPSUBQ(d, octave, octave)
	VPSRAQ(Imm(52), octave, octave)
	VPADDQ(octave, octave, tail)
	VPSLLQ(Imm(52), octave, octave)
	VPADDQ(octave, d, d)
	half := K()
	VPCMPQ(Imm(2), halfMem, d, half) // at most
	VPADDQ(oneMem, tail, half, tail)
	VPMAXSQ(zero, tail, tail)
	VPMINSQ(lastMem, tail, tail)
	certain := K()
	VCMPPD(Imm(0), one, x, certain)
	VMOVDQU64(certainMem, certain, tail)
	VPADDQ(firstMem, tail, tail)
	tail32, isTail := YMM(), K()
	VPMOVQD(tail, tail32)
	VPCMPD(Imm(5), last32Mem, j, isTail) // not below: rounding may reach gridCells
	VMOVDQA32(tail32, isTail, cell)
	VPADDD(cell, cell, cell)
	key := XMM()
	VPMOVDW(cell, key)
	VMOVDQU(key, Mem{Base: keys, Index: i, Scale: 2})
	INCQ(out)
	ADDQ(Imm(8), i)
	CMPQ(i, n)
	JL(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
