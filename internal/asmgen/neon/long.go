package main

// Registers of longRows: the sums of 16 lanes in four each, and what the elements at work need.
const (
	longS, longD, longQ, longSecond, longCount v = 16, 20, 24, 28, 29

	longX, longE, longR, longY, longW, longEqual v = 13, 14, 15, 30, 31, 7

	rRows, rLongK, rFlushed, rBeyond, rMasks, rWhole, rDoubles = 3, 4, 6, 9, 10, 11, 20
)

// longRows fills the sums of n rows of k ≥ 64 scores. A lane of 16, in four registers, has every 16th element; flushed
// has room for the three times 8 float64 that they go to.
func longRows(a *asm, withE bool) {
	logits(a, "longRows", withE)
	a.line("MOVD n+24(FP), R%d", rRows)
	a.line("MOVD k+32(FP), R%d", rLongK)
	a.line("MOVD p+40(FP), R5")
	a.line("MOVD flushed+48(FP), R%d", rFlushed)
	parametersOf(a, 5)
	a.line("LSL $2, R%d, R8", rLongK) // bytes a row
	a.line("AND $15, R%d, R%d", rLongK, rBeyond)
	a.line("ADD $%d, R%d, R%d", atMasks, rTable, rMasks)
	a.line("ADD R%d<<2, R%d, R%d", rBeyond, rMasks, rMasks)
	a.line("LSR $4, R%d, R%d", rLongK, rWhole)
	a.line("ADD $%d, R%d, R%d", offS, rSums, rDoubles)
	row := a.label()
	a.here(row)
	maximum(a)
	scaling(a)
	for at := 0; at < 3*64; at += 16 {
		a.zero(longSecond)
		a.store(longSecond, rFlushed, at)
	}
	a.zero(longCount)
	clearLanes(a)
	lastElements(a, withE)
	wholeVectors(a, withE)
	storeLong(a)
	firstEqual(a, "fcmeq.4s", top, rZ)
	a.line("MOVW R12, %d(R%d)", offArg, rSums)
	a.line("ADD R8, R%d, R%d", rZ, rZ)
	if withE {
		a.line("ADD R8, R%d, R%d", rE, rE)
	}
	a.line("ADD $4, R%d, R%d", rSums, rSums)
	a.line("ADD $8, R%d, R%d", rDoubles, rDoubles)
	a.line("SUBS $1, R%d, R%d", rRows, rRows)
	a.line("BNE %s", row)
	a.line("RET")
}

// maximum sets all lanes of top, and R12 to the last 16 elements.
func maximum(a *asm) {
	constant(a, 16, atInfinity)
	for i := range 3 {
		a.mov(17+v(i), 16)
	}
	take := func() {
		for i := range 4 {
			a.op("fmax.4s", 16+v(i), 16+v(i), 20+v(i))
		}
	}
	a.line("MOVD R%d, R13", rZ)
	a.line("MOVD R%d, R14", rWhole)
	loop := a.label()
	a.here(loop)
	a.loadFourNext(20, 13)
	take()
	a.line("SUBS $1, R14, R14")
	a.line("BNE %s", loop)
	a.line("ADD R8, R%d, R12", rZ)
	a.line("SUB $64, R12, R12")
	a.loadFour(20, 12)
	take()
	a.op("fmax.4s", 16, 16, 17)
	a.op("fmax.4s", 18, 18, 19)
	a.op("fmax.4s", 16, 16, 18)
	a.of("fmaxv s%d, v%d.4s", 16, 16)
	a.of("dup v%d.4s, v%d.s[0]", top, 16)
}

func clearLanes(a *asm) {
	constant(a, longQ, atSumP2)
	for i := range 4 {
		a.zero(longS + v(i))
		a.zero(longD + v(i))
		if i > 0 {
			a.mov(longQ+v(i), longQ)
		}
	}
}

// sumFour adds the i-th four of 16 elements to the lanes; elements equal to the maximum count and add nothing. R15
// points to where e goes.
func sumFour(a *asm, i int, withE, masked bool) {
	const x, e, w, equal = longX, longE, longW, longEqual
	exps(a, element{x, e, longR, longY, w})
	a.op("fcmeq.4s", equal, x, top)
	a.op("bic.16b", e, e, equal)
	if withE {
		scaled(a, longY, e, equal, w)
		a.storeNext(longY, 15)
	}
	if masked {
		a.load(w, rMasks, 16*i)
		a.op("and.16b", e, e, w)
		a.op("and.16b", equal, equal, w)
	}
	a.op("sub.4s", longCount, longCount, equal)
	a.op("fsub.4s", x, x, top)
	a.op("fmla.4s", longD+v(i), x, e)
	a.op("fadd.4s", longS+v(i), longS+v(i), e)
	a.op("fmla.4s", longQ+v(i), e, e)
	a.op("fmax.4s", longSecond, longSecond, e)
}

// lastElements adds those beyond whole vectors to the last lanes: the last 16 with a mask.
func lastElements(a *asm, withE bool) {
	none := a.label()
	a.line("CBZ R%d, %s", rBeyond, none)
	if withE {
		a.line("ADD R8, R%d, R15", rE)
		a.line("SUB $64, R15, R15")
	}
	for i := range 4 {
		a.loadNext(longX, 12)
		sumFour(a, i, withE, true)
	}
	a.here(none)
}

// wholeVectors adds the others and flushes after each 16 vectors.
func wholeVectors(a *asm, withE bool) {
	a.line("MOVD R%d, R13", rZ)
	if withE {
		a.line("MOVD R%d, R15", rE)
	}
	a.line("MOVD R%d, R14", rWhole)
	upTo16(a, func() {
		for i := range 4 {
			a.loadNext(longX, 13)
			sumFour(a, i, withE, false)
		}
	}, func() {
		for i, lanes := range []v{longS, longD, longQ} {
			flushLanes(a, lanes, 64*i)
		}
		clearLanes(a)
	})
}

// flushLanes adds lanes j and then j+8 to the j-th of the 8 float64 at offset at.
func flushLanes(a *asm, lanes v, at int) {
	const sum, term v = 13, 14
	for i := range 4 {
		cvt := []string{"fcvtl v%d.2d, v%d.2s", "fcvtl2 v%d.2d, v%d.4s"}[i%2]
		a.load(sum, rFlushed, at+16*i)
		for _, from := range []v{lanes + v(i/2), lanes + v(i/2) + 2} {
			a.of(cvt, term, from)
			a.op("fadd.2d", sum, sum, term)
		}
		a.store(sum, rFlushed, at+16*i)
	}
}

// storeLong stores a row's sums: those of 8 float64 are ((0+4)+(2+6)) + ((1+5)+(3+7)).
func storeLong(a *asm) {
	for i, at := range []int{offS, offD, offQ} {
		for j := range 4 {
			a.load(16+v(j), rFlushed, 64*i+16*j)
		}
		a.op("fadd.2d", 16, 16, 18)
		a.op("fadd.2d", 17, 17, 19)
		a.op("fadd.2d", 16, 16, 17)
		a.of("faddp d%d, v%d.2d", 16, 16)
		a.storeDouble(16, rDoubles, at-offS)
	}
	a.of("fmaxv s%d, v%d.4s", longSecond, longSecond)
	a.of("addv s%d, v%d.4s", longCount, longCount)
	a.storeWord(top, rSums, offMax)
	a.storeWord(longSecond, rSums, offSecond)
	a.storeWord(longCount, rSums, offCount)
	a.storeWord(inverse, rSums, offInverse)
}

// firstEqual sets R12 to the index of the first element of a row that equals a maximum.
func firstEqual(a *asm, equal string, top v, rRow int) {
	scan, found := a.label(), a.label()
	compare := func() {
		a.loadFourNext(20, 13)
		for i := range v(4) {
			a.op(equal, 20+i, 20+i, top)
		}
	}
	a.line("MOVD R%d, R13", rRow)
	a.line("MOVD R%d, R14", rWhole)
	a.here(scan)
	compare()
	a.op("orr.16b", 24, 20, 21)
	a.op("orr.16b", 25, 22, 23)
	a.op("orr.16b", 24, 24, 25)
	a.of("umaxv s%d, v%d.4s", 24, 24)
	a.general(12, 24)
	a.line("CBNZ R12, %s", found)
	a.line("SUBS $1, R14, R14")
	a.line("BNE %s", scan)
	a.line("ADD R8, R%d, R13", rRow)
	a.line("SUB $64, R13, R13") // the last 16
	compare()
	a.here(found)
	a.line("ADD $%d, R%d, R16", atIndexes, rTable)
	a.loadFour(24, 16)
	for i := range v(4) {
		a.op("orn.16b", 24+i, 24+i, 20+i)
	}
	a.op("umin.4s", 24, 24, 25)
	a.op("umin.4s", 26, 26, 27)
	a.op("umin.4s", 24, 24, 26)
	a.of("uminv s%d, v%d.4s", 24, 24)
	a.general(12, 24)
	a.line("SUB R%d, R13, R13", rRow)
	a.line("LSR $2, R13, R13")
	a.line("SUB $16, R13, R13")
	a.line("ADD R13, R12, R12")
}
