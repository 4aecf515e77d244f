package main

// shortRows fills the sums of groups of 4 rows of 4 ≤ k < 64 scores. A lane is a row: the rows of a group become the
// columns of cols, which has room for 64 of 4, and are summed in their order.
func shortRows(a *asm, withE bool) {
	const (
		rK, rGroups, rCols = 3, 4, 6
		second, count, arg = v(24), v(25), v(26)
		column, step, s    = v(27), v(28), v(29)
		d, q               = v(30), v(31)
	)
	logits(a, "shortRows", withE)
	a.line("MOVD k+24(FP), R%d", rK)
	a.line("MOVD groups+32(FP), R%d", rGroups)
	a.line("MOVD p+40(FP), R5")
	a.line("MOVD columns+48(FP), R%d", rCols)
	parametersOf(a, 5)
	blocksOf(a, rK, rCols)
	a.line("MOVD R%d, R19", rSums)           // where the words of a group are
	a.line("ADD $%d, R%d, R20", offS, rSums) // and its float64
	group := a.label()
	a.here(group)

	constant(a, top, atInfinity)
	rowPointers(a, rZ)
	a.line("MOVD R%d, R13", rCols)
	a.line("LSR $2, R%d, R14", rK)
	maxima := func() {
		for i := range 4 {
			a.loadNext(16+v(i), 9+i)
		}
		a.transpose(16, 20)
		for i := range 4 {
			a.op("fmax.4s", top, top, 16+v(i))
		}
		a.storeFourNext(16, 13)
	}
	blocks(a, maxima, func() { a.line("MOVD R23, R13") })
	scaling(a)

	for _, r := range []v{s, d, second, count, column} {
		a.zero(r)
	}
	constant(a, q, atSumP2)
	a.op("fcmeq.4s", step, column, column)
	a.mov(arg, step)                   // -1
	a.op("sub.4s", step, column, step) // 1
	for at := 0; at < 3*128; at += 128 {
		a.store(second, 20, at)
		a.store(second, 20, at+16)
	}
	a.line("MOVD R%d, R13", rCols)
	a.line("MOVD R%d, R14", rK)
	upTo16(a, func() {
		const x, e, r, y, w = v(16), v(17), v(18), v(19), v(20)
		if withE {
			a.load(x, 13, 0)
		} else {
			a.loadNext(x, 13)
		}
		exps(a, element{x, e, r, y, w})
		a.op("fcmeq.4s", r, x, top)
		a.op("bic.16b", e, e, r)
		if withE {
			scaled(a, y, e, r, w)
			a.storeNext(y, 13)
		}
		a.op("sub.4s", count, count, r)
		a.op("orn.16b", r, column, r)
		a.op("umin.4s", arg, arg, r)
		a.op("add.4s", column, column, step)
		a.op("fsub.4s", x, x, top)
		a.op("fmla.4s", d, x, e)
		a.op("fadd.4s", s, s, e)
		a.op("fmla.4s", q, e, e)
		a.op("fmax.4s", second, second, e)
	}, func() {
		for i, sum := range []v{s, d, q} {
			a.load(16, 20, 128*i)
			a.load(17, 20, 128*i+16)
			a.of("fcvtl v%d.2d, v%d.2s", 18, sum)
			a.of("fcvtl2 v%d.2d, v%d.4s", 19, sum)
			a.op("fadd.2d", 16, 16, 18)
			a.op("fadd.2d", 17, 17, 19)
			a.store(16, 20, 128*i)
			a.store(17, 20, 128*i+16)
		}
		a.zero(s)
		a.zero(d)
		constant(a, q, atSumP2)
	})

	a.store(top, 19, offMax)
	a.store(second, 19, offSecond)
	a.store(count, 19, offCount)
	a.store(arg, 19, offArg)
	a.store(inverse, 19, offInverse)
	if withE {
		rowPointers(a, rE)
		a.line("MOVD R%d, R13", rCols)
		a.line("LSR $2, R%d, R14", rK)
		blocks(a, func() {
			a.loadFourNext(16, 13)
			a.transpose(16, 20)
			for i := range 4 {
				a.storeNext(16+v(i), 9+i)
			}
		}, func() { a.line("MOVD R23, R13") })
		a.line("ADD R8<<2, R%d, R%d", rE, rE)
	}
	a.line("ADD R8<<2, R%d, R%d", rZ, rZ)
	a.line("ADD $16, R19, R19")
	a.line("ADD $32, R20, R20")
	a.line("SUBS $1, R%d, R%d", rGroups, rGroups)
	a.line("BNE %s", group)
	a.line("RET")
}

// blocksOf sets R8 to a row's bytes, and what blocks needs.
func blocksOf(a *asm, rK, rCols int) {
	a.line("LSL $2, R%d, R8", rK)
	a.line("AND $3, R%d, R21", rK) // columns beyond whole blocks of 4
	a.line("LSL $2, R21, R22")
	a.line("SUB $16, R22, R22") // from the end of the whole blocks to the last 4 columns
	a.line("SUB $4, R%d, R23", rK)
	a.line("ADD R23<<4, R%d, R23", rCols) // where those are in the columns
}

// rowPointers sets R9 to R12 to the four rows from base on.
func rowPointers(a *asm, base int) {
	a.line("MOVD R%d, R9", base)
	for i := range 3 {
		a.line("ADD R8, R%d, R%d", 9+i, 10+i)
	}
}

// blocks does a thing for each 4 columns, R14 times, and for the last 4 where their number is no multiple of 4: some
// are done twice then, with the same result. R13 points to the columns; last moves it to the last 4.
func blocks(a *asm, do, last func()) {
	again, done := a.label(), a.label()
	a.here(again)
	do()
	a.line("SUBS $1, R14, R14")
	a.line("BNE %s", again)
	a.line("CBZ R21, %s", done)
	for i := range 4 {
		a.line("ADD R22, R%d, R%d", 9+i, 9+i)
	}
	last()
	do()
	a.here(done)
}
