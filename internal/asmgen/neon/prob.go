package main

// Offsets of the fields of kernel's probSums.
const offProbTop, offProbSecond, offProbArg, offProbSum, offProbH, offProbP2 = 0, 64, 128, 192, 320, 448

// Registers of both functions for probabilities: constants, the two largest, and what the elements at work need. The
// coefficients of ln are in eight.
const (
	lnCoef                             v = 0
	probFloor, sqrtHalf, exponent, ln2 v = 8, 9, 10, 11

	probTop, probSecond               v = 17, 18
	probX, probK, probF, probY, probW v = 13, 14, 15, 16, 12

	rProbs, rQ = 0, 1
)

func probConstants(a *asm) {
	for i := range 8 {
		constant(a, lnCoef+v(i), atLn+4*i)
	}
	constant(a, probFloor, atFloor)
	constant(a, sqrtHalf, atSqrtHalf)
	constant(a, exponent, atExponent)
	constant(a, ln2, atLn2)
}

// twoLargest keeps the two largest of each lane, as bits.
func twoLargest(a *asm) {
	a.op("umin.4s", probK, probTop, probX)
	a.op("umax.4s", probSecond, probSecond, probK)
	a.op("umax.4s", probTop, probTop, probX)
}

// probTerms adds q·ln q and q² to h and p2, and leaves 0 in place of what is at most the floor.
func probTerms(a *asm, h, p2 v) {
	const x, k, f, w = probX, probK, probF, probW
	y := probY
	a.op("fcmgt.4s", k, x, probFloor)
	a.op("and.16b", x, x, k)
	a.op("sub.4s", k, x, sqrtHalf)
	a.op("and.16b", k, k, exponent)
	a.op("sub.4s", f, x, k)
	a.one(y)
	a.op("fsub.4s", f, f, y)
	a.mov(y, lnCoef+1)
	a.op("fmla.4s", y, lnCoef, f)
	other := w
	for i := range 6 {
		a.mov(other, lnCoef+2+v(i))
		a.op("fmla.4s", other, y, f)
		y, other = other, y
	}
	a.one(other)
	a.op("fmla.4s", other, y, f)
	a.op("fmul.4s", f, other, f)
	a.of("sshr v%d.4s, v%d.4s, #23", k, k)
	a.of("scvtf v%d.4s, v%d.4s", k, k)
	a.op("fmla.4s", f, k, ln2)
	a.op("fmls.4s", h, x, f)
	a.op("fmla.4s", p2, x, x)
}

// addPair adds the lower or upper two of n to two float64. It overwrites probK.
func addPair(a *asm, d, n v, upper bool) {
	if upper {
		a.of("fcvtl2 v%d.2d, v%d.4s", probK, n)
	} else {
		a.of("fcvtl v%d.2d, v%d.2s", probK, n)
	}
	a.op("fadd.2d", d, d, probK)
}

// shortProbs fills the sums of groups of 4 rows of 4 ≤ k < 64 probabilities: a lane is a row.
func shortProbs(a *asm) {
	const (
		rK, rGroups, rCols = 2, 3, 6
		arg, column, step  = v(19), v(20), v(21)
		h, p2              = v(22), v(23)
		sum, flushed       = v(24), v(28) // of two registers, of four: h and p2
	)
	begin(a, "shortProbs", 40)
	a.line("MOVD a+0(FP), R%d", rProbs)
	a.line("MOVD q+8(FP), R%d", rQ)
	a.line("MOVD k+16(FP), R%d", rK)
	a.line("MOVD groups+24(FP), R%d", rGroups)
	a.line("MOVD columns+32(FP), R%d", rCols)
	probConstants(a)
	blocksOf(a, rK, rCols)
	a.line("MOVD R%d, R19", rProbs)                 // where the words of a group are
	a.line("ADD $%d, R%d, R20", offProbSum, rProbs) // and its float64
	group := a.label()
	a.here(group)
	rowPointers(a, rQ)
	a.line("MOVD R%d, R13", rCols)
	a.line("LSR $2, R%d, R14", rK)
	blocks(a, func() {
		for i := range 4 {
			a.loadNext(24+v(i), 9+i)
		}
		a.transpose(24, 28)
		a.storeFourNext(24, 13)
	}, func() { a.line("MOVD R23, R13") })
	for _, r := range []v{probTop, probSecond, arg, column, h, sum, sum + 1, flushed, flushed + 1, flushed + 2,
		flushed + 3} {
		a.zero(r)
	}
	a.op("cmeq.4s", step, column, column)
	a.op("sub.4s", step, column, step)
	constant(a, p2, atSumP2)
	a.line("MOVD R%d, R13", rCols)
	a.line("MOVD R%d, R14", rK)
	upTo16(a, func() {
		a.loadNext(probX, 13)
		a.op("cmhi.4s", probF, probX, probTop)
		a.op("bit.16b", arg, column, probF)
		a.op("add.4s", column, column, step)
		twoLargest(a)
		probTerms(a, h, p2)
		addPair(a, sum, probX, false)
		addPair(a, sum+1, probX, true)
	}, func() {
		for i, r := range []v{h, h, p2, p2} {
			addPair(a, flushed+v(i), r, i%2 == 1)
		}
		a.zero(h)
		constant(a, p2, atSumP2)
	})
	a.store(probTop, 19, offProbTop)
	a.store(probSecond, 19, offProbSecond)
	a.store(arg, 19, offProbArg)
	for i, at := range []int{offProbSum, offProbH, offProbP2} {
		from := []v{sum, flushed, flushed + 2}[i]
		a.store(from, 20, at-offProbSum)
		a.store(from+1, 20, at-offProbSum+16)
	}
	a.line("ADD R8<<2, R%d, R%d", rQ, rQ)
	a.line("ADD $16, R19, R19")
	a.line("ADD $32, R20, R20")
	a.line("SUBS $1, R%d, R%d", rGroups, rGroups)
	a.line("BNE %s", group)
	a.line("RET")
}

// longProbs fills the sums of n rows of k ≥ 64 probabilities. A lane of 16 has every 16th element; flushed has room for
// the twice 8 float64 of h and p2, and for the 16 float32 of the elements beyond whole vectors.
func longProbs(a *asm) {
	const (
		rRows, rK, rFlushed = 2, 3, 6
		h, p2, sum          = v(19), v(23), v(27) // four registers each; the last of sum is 30
	)
	begin(a, "longProbs", 40)
	a.line("MOVD a+0(FP), R%d", rProbs)
	a.line("MOVD q+8(FP), R%d", rQ)
	a.line("MOVD n+16(FP), R%d", rRows)
	a.line("MOVD k+24(FP), R%d", rK)
	a.line("MOVD flushed+32(FP), R%d", rFlushed)
	probConstants(a)
	a.line("LSL $2, R%d, R8", rK)
	a.line("AND $15, R%d, R%d", rK, rBeyond)
	a.line("LSR $4, R%d, R%d", rK, rWhole)
	a.line("ADD $%d, R%d, R%d", offProbSum, rProbs, rDoubles)
	row := a.label()
	a.here(row)
	for i := range v(4) {
		a.zero(sum + i)
	}
	a.zero(probTop)
	a.zero(probSecond)
	for at := 0; at < 2*64; at += 16 {
		a.store(probTop, rFlushed, at)
	}
	clear := func() {
		constant(a, p2, atSumP2)
		for i := range v(4) {
			a.zero(h + i)
			if i > 0 {
				a.mov(p2+i, p2)
			}
		}
	}
	clear()
	vector := func() {
		for i := range v(4) {
			a.loadNext(probX, 13)
			twoLargest(a)
			probTerms(a, h+i, p2+i)
			addPair(a, sum+2*(i%2), probX, false)
			addPair(a, sum+2*(i%2)+1, probX, true)
		}
	}
	flush := func() {
		flushLanes(a, h, 0)
		flushLanes(a, p2, 64)
		clear()
	}
	a.line("MOVD R%d, R13", rQ)
	a.line("MOVD R%d, R14", rWhole)
	upTo16(a, vector, flush)
	done := a.label()
	a.line("CBZ R%d, %s", rBeyond, done)
	beyondVectors(a, rFlushed)
	vector()
	flush()
	a.here(done)
	storeProbs(a, sum, rFlushed)
	a.line("ADD R8, R%d, R%d", rQ, rQ)
	a.line("ADD $4, R%d, R%d", rProbs, rProbs)
	a.line("ADD $8, R%d, R%d", rDoubles, rDoubles)
	a.line("SUBS $1, R%d, R%d", rRows, rRows)
	a.line("BNE %s", row)
	a.line("RET")
}

// beyondVectors copies the elements from R13 on behind what is flushed, with zeros up to 16, and sets R13 to them.
func beyondVectors(a *asm, rFlushed int) {
	a.zero(probX)
	for at := 0; at < 64; at += 16 {
		a.store(probX, rFlushed, 2*64+at)
	}
	a.line("ADD $%d, R%d, R12", 2*64, rFlushed)
	a.line("MOVD R%d, R14", rBeyond)
	each := a.label()
	a.here(each)
	a.line("MOVWU.P 4(R13), R15")
	a.line("MOVW.P R15, 4(R12)")
	a.line("SUBS $1, R14, R14")
	a.line("BNE %s", each)
	a.line("ADD $%d, R%d, R13", 2*64, rFlushed)
}

// storeProbs stores a row's sums, each ((0+4)+(2+6)) + ((1+5)+(3+7)) of 8, the two largest and where the first is.
func storeProbs(a *asm, sum v, rFlushed int) {
	for i, at := range []int{offProbSum, offProbH, offProbP2} {
		if i > 0 {
			for j := range v(4) {
				a.load(sum+j, rFlushed, 64*(i-1)+16*int(j))
			}
		}
		a.op("fadd.2d", sum, sum, sum+2)
		a.op("fadd.2d", sum+1, sum+1, sum+3)
		a.op("fadd.2d", sum, sum, sum+1)
		a.of("faddp d%d, v%d.2d", sum, sum)
		a.storeDouble(sum, rDoubles, at-offProbSum)
	}
	for _, lanes := range []int{2, 1} {
		a.rotate(probX, probTop, lanes)
		a.rotate(probF, probSecond, lanes)
		a.op("umax.4s", probSecond, probSecond, probF)
		twoLargest(a)
	}
	a.storeWord(probTop, rProbs, offProbTop)
	a.storeWord(probSecond, rProbs, offProbSecond)
	firstEqual(a, "cmeq.4s", probTop, rQ)
	a.line("MOVW R12, %d(R%d)", offProbArg, rProbs)
}
