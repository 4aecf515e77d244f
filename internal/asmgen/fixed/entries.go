package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// findKeys512 takes 8 listed values at a time, from the start of each row's: what it writes beyond a row's end is
// written again by the next row.
func findKeys512() {
	TEXT("findKeys512", NOSPLIT,
		"func(key *uint32, sum *int64, class *uint32, v *float32, end *int, rows int, scale *float64, m, last, "+
			"slack, rest float64, step uint64)")
	Pragma("noescape")
	Doc("findKeys512 is findKeysGo by AVX-512; last is m - 2·slack, rest 1 - slack and step m+1. It reads and writes " +
		"whole vectors.")
	key, sum, class, v := Load(Param("key"), GP64()), Load(Param("sum"), GP64()), Load(Param("class"),
		GP64()), Load(Param("v"), GP64())
	end, rows, scales := Load(Param("end"), GP64()), Load(Param("rows"), GP64()), Load(Param("scale"), GP64())
	m, last, slack, rest, step := ZMM(), ZMM(), ZMM(), ZMM(), YMM()
	for i, z := range []VecVirtual{m, last, slack, rest} {
		VBROADCASTSD(NewParamAddr([]string{"m", "last", "slack", "rest"}[i], 56+8*i), z)
	}
	stepAt := GP64()
	Load(Param("step"), stepAt)
	VPBROADCASTD(stepAt.(GPVirtual).As32(), step)
	magic, one, ones := ZMM(), ZMM(), YMM()
	VMOVUPD(magicMem, magic)
	VMOVUPD(unitMem, one)
	VPCMPEQD(ones, ones, ones)
	i, x, to := GP64(), GP64(), GP64()
	XORQ(i, i)
	XORQ(x, x)
	scale, p, q, whole, bin, k := ZMM(), ZMM(), ZMM(), ZMM(), YMM(), YMM()
	sure := K()
	Label("row")
	MOVQ(Mem{Base: end, Index: i, Scale: 8}, to)
	VBROADCASTSD(Mem{Base: scales, Index: i, Scale: 8}, scale)
	at := GP64()
	MOVQ(x, at)
	Label("loop")
	CMPQ(at, to)
	JGE(LabelRef("next"))
	VCVTPS2PD(Mem{Base: v, Index: at, Scale: 4}, p)
	VMULPD(scale, p, p)
	VMINPD(one, p, p)
	VADDPD(magic, p, q)
	VPSUBQ(magic, q, q)
	VMOVDQU64(q, Mem{Base: sum, Index: at, Scale: 8})
	VMULPD(m, p, p)
	VMINPD(last, p, p)
	VRNDSCALEPD(Imm(3), p, whole)
	VCVTTPD2DQ(p, bin)
	VSUBPD(whole, p, p)
	VCMPPD(Imm(14), slack, p, sure)
	VCMPPD(Imm(1), rest, p, sure, sure)
	VPMULLD(Mem{Base: class, Index: at, Scale: 4}, step, k)
	VPADDD(bin, k, k)
	KNOTB(sure, sure)
	VMOVDQA32(ones, sure, k)
	VMOVDQU(k, Mem{Base: key, Index: at, Scale: 4})
	ADDQ(Imm(8), at)
	JMP(LabelRef("loop"))
	Label("next")
	MOVQ(to, x)
	INCQ(i)
	CMPQ(i, rows)
	JL(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// addEntryAndNext adds to the entry that ends at place, and ends the loop over x below n; "done" is where it is left
// early.
func addEntryAndNext(entries, place, entry, x, n Register) {
	at := Mem{Base: entries, Index: place, Scale: 1, Disp: -32}
	VPADDQ(at, entry, entry)
	VMOVDQU(entry, at)
	INCQ(x)
	CMPQ(x, n)
	JL(LabelRef("loop"))
	Label("done")
	Store(x, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// addEntries2 adds to the four sums of an entry at once.
func addEntries2() {
	TEXT("addEntries2", NOSPLIT, "func(entries *int64, places, keys *uint32, sums *int64, n int, one int64) (done int)")
	Pragma("noescape")
	Doc("addEntries2 is addEntriesGo by AVX2.")
	entries, places := Load(Param("entries"), GP64()), Load(Param("places"), GP64())
	keys, sums, n := Load(Param("keys"), GP64()), Load(Param("sums"), GP64()), Load(Param("n"), GP64())
	count, weight, entry := XMM(), GP64(), YMM()
	Load(Param("one"), weight)
	place, x := GP64(), GP64()
	MOVQ(U32(1), place)
	VMOVQ(place, count)
	VPINSRQ(Imm(1), weight, count, count)
	XORQ(x, x)
	Label("loop")
	MOVL(Mem{Base: keys, Index: x, Scale: 4}, place.As32())
	CMPL(place.As32(), I8(-1))
	JE(LabelRef("done"))
	MOVL(Mem{Base: places, Index: place, Scale: 4}, place.As32())
	TESTL(place.As32(), place.As32())
	JE(LabelRef("done"))
	SHLQ(Imm(5), place)
	sum := XMM()
	VMOVQ(Mem{Base: sums, Index: x, Scale: 8}, sum)
	VINSERTI128(Imm(1), sum, count.AsY(), entry)
	addEntryAndNext(entries, place, entry, x, n)
}

func addCells2() {
	TEXT("addCells2", NOSPLIT,
		"func(entries *int64, places, key, hit *uint16, w, wc, wc2 *int64, rows *int32, n int, outcome uint64) (done "+
			"int)")
	Pragma("noescape")
	Doc("addCells2 is addCellsGo by AVX2.")
	entries, places := Load(Param("entries"), GP64()), Load(Param("places"), GP64())
	key, hit := Load(Param("key"), GP64()), Load(Param("hit"), GP64())
	w, wc, wc2 := Load(Param("w"), GP64()), Load(Param("wc"), GP64()), Load(Param("wc2"), GP64())
	rows, n := Load(Param("rows"), GP64()), Load(Param("n"), GP64())
	count, entry, low, high := XMM(), YMM(), XMM(), XMM()
	i, place, x := GP64(), GP64(), GP64()
	MOVQ(U32(1), i)
	VMOVQ(i, count)
	XORQ(x, x)
	Label("loop")
	MOVLQSX(Mem{Base: rows, Index: x, Scale: 4}, i)
	MOVWLZX(Mem{Base: hit, Index: i, Scale: 2}, place.As32())
	ANDQ(NewParamAddr("outcome", 72), place)
	tmp := GP64()
	MOVWLZX(Mem{Base: key, Index: i, Scale: 2}, tmp.As32())
	ADDL(tmp.As32(), place.As32())
	MOVWLZX(Mem{Base: places, Index: place, Scale: 2}, place.As32())
	TESTL(place.As32(), place.As32())
	JE(LabelRef("done"))
	SHLQ(Imm(5), place)
	VPINSRQ(Imm(1), Mem{Base: w, Index: i, Scale: 8}, count, low)
	VMOVQ(Mem{Base: wc, Index: i, Scale: 8}, high)
	VPINSRQ(Imm(1), Mem{Base: wc2, Index: i, Scale: 8}, high, high)
	VINSERTI128(Imm(1), high, low.AsY(), entry)
	addEntryAndNext(entries, place, entry, x, n)
}
