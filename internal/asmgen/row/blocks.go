package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blocks is shortRows and finish for many blocks of 16 rows of 4 ≤ k ≤ 16 scores, which go to float64 once only. No
// call stands between two blocks, so the columns of one are summed while the divisions of the one before are waited
// for.
func blocks(s isa, store bool) {
	name := "blocks"
	if store {
		name += "E"
	}
	name += s.suffix
	TEXT(name, 0, "func(rows *byte, e, z *float32, n, k int, p *byte) (left int, bad uint32)")
	Doc(name+" makes n > 0 blocks of 16 rows of 4 ≤ k ≤ 16 scores, up to the first with rows that it cannot make,",
		"which are in bad; left blocks come after it.")
	Pragma("noescape")
	const columnBytes = 16 * 64
	r := &short{gen: newGen(s), label: name, store: store, kAt: 32, buf: AllocLocal(64 + columnBytes + offInverse + 64)}
	r.loadK()
	a := GP64()
	r.columnsAt(a)
	ADDQ(U32(columnBytes), a)
	r.a = a
	r.doubleParams(Load(Param("p"), GP64()))
	f := &finisher{gen: r.gen, rows: GP64(), a: a, second: Mem{Base: a, Disp: offSecond}, narrow: true}
	Load(Param("rows"), f.rows)

	if r.wide {
		r.saveMax(r.transposed())
	}
	Label(name + "_block")
	r.loadK()
	if !r.wide { // too few registers to overlap it with anything
		r.saveMax(r.transposed())
	}
	r.preload(expNames...)
	r.preload("sumP2Start")
	r.params(Load(Param("p"), GP64()))
	for h := range r.halves() {
		r.allColumns(h)
	}
	if store {
		r.groups("e", "out", func(g *group) { g.save(r) })
	}
	step := GP64()
	MOVQ(r.k, step)
	SHLQ(Imm(6), step)
	if store {
		ADDQ(step, NewParamAddr("e", 8))
	}
	if r.wide { // there is no block after the last: it comes once more, for nothing
		last := GP64()
		XORL(last.As32(), last.As32())
		CMPQ(NewParamAddr("n", 24), Imm(1))
		CMOVQEQ(last, step)
	}
	ADDQ(step, NewParamAddr("z", 16))
	var max reg.VecVirtual
	r.loadK()
	bad := f.all(func() { max = r.transposing() })
	if r.wide {
		r.loadK()
		r.lastGroup(max)
		r.saveMax([]reg.VecVirtual{max})
	}
	ADDQ(U32(16*rowBytes), f.rows)
	DECQ(NewParamAddr("n", 24))
	JZ(LabelRef(name + "_done"))
	TESTL(bad.As32(), bad.As32())
	JZ(LabelRef(name + "_block"))
	Label(name + "_done")
	left := Load(Param("n"), GP64())
	Store(left, ReturnIndex(0))
	Store(bad.As32(), ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// loadK loads k anew: the finish needs the registers.
func (r *short) loadK() {
	r.k = GP64()
	Load(Param("k"), r.k)
}

// transposing is transposed with turns for others, of the first 12 columns.
func (r *short) transposing() reg.VecVirtual {
	max, g, at := []reg.VecVirtual{r.vec()}, r.firstGroup("z"), GP64()
	VMOVUPS(table["negInf"], max[0])
	g.load(r, max)
	for from := 4; from < 12; from += 4 {
		r.pause()
		MOVL(U32(4*from), at.As32())
		g.moveTo(r, at)
		g.load(r, max)
	}
	return max[0]
}

// lastGroup is that of the last four columns, if there are more than transposing does.
func (r *short) lastGroup(max reg.VecVirtual) {
	label := r.label + "_few"
	CMPQ(NewParamAddr("k", r.kAt), Imm(12))
	JLE(LabelRef(label))
	g, at := r.firstGroup("z"), GP64()
	MOVL(U32(4*12), at.As32())
	g.moveTo(r, at)
	g.load(r, []reg.VecVirtual{max})
	Label(label)
}

// moveTo makes g the group that begins at bytes into the rows, or the last one where that is beyond it.
func (g *group) moveTo(r *short, at reg.GPVirtual) {
	last := GP64()
	Load(Param("k"), last)
	SHLQ(Imm(2), last)
	SUBQ(Imm(16), last)
	CMPQ(at, last)
	CMOVQGT(last, at)
	Load(Param("z"), last)
	for i := range g.base {
		LEAQ(Mem{Base: last, Index: at, Scale: 1}, g.base[i])
		if i < 3 {
			LEAQ(Mem{Base: last, Index: g.stride, Scale: 4}, last)
		}
	}
	r.columnsAt(g.buf)
	SHLQ(Imm(4), at)
	ADDQ(at, g.buf)
}

// allColumns is columns for at most 16 of them: the sums stay float32.
func (r *short) allColumns(h int) {
	label := r.label + "_columns" + string(rune('0'+h))
	s, n := r.startColumns(h), GP64()
	ahead := r.startAhead(h)
	MOVQ(r.k, n)
	r.startChunk(s)
	Label(label)
	fetch(ahead)
	r.column(s)
	DECQ(n)
	JNZ(LabelRef(label))
	if r.wide {
		count, first := r.equals(s)
		VMOVUPS(count, Mem{Base: r.a, Disp: offCount})
		VMOVUPS(first, Mem{Base: r.a, Disp: offArg})
	}
	for i, v := range []reg.VecVirtual{s.s, s.d, s.q} {
		VMOVUPS(v, Mem{Base: r.a, Disp: offS + (offD-offS)*i + h*r.bytes()})
	}
	r.saveColumns(s, h)
}
