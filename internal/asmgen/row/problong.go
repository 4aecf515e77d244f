package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// problong is the state of probLong.
type problong struct {
	*gen
	label   string
	q, k, i reg.GPVirtual
	l       []problane
	index   []Op
	flushed [3][]Op // 8 float64 lanes of the sums
}

// probLong: n ≤ 16 rows of k ≥ 64 probabilities. The elements beyond whole vectors come last, in the first lanes.
func probLong(s isa) {
	name := "probLong" + s.suffix
	TEXT(name, 0, "func(a *byte, q *float32, n, k int)")
	Doc(name + " fills the sums of n ≤ 16 rows of k ≥ 64 probabilities.")
	Pragma("noescape")
	r := &problong{gen: newGen(s), label: name}
	r.probPreload()
	ap, aq, n := GP64(), GP64(), GP64()
	Load(Param("a"), ap)
	MOVQ(ap, aq)
	r.q, r.k = GP64(), GP64()
	Load(Param("q"), r.q)
	Load(Param("k"), r.k)
	Load(Param("n"), n)
	r.index = make([]Op, r.halves())
	for i := range r.flushed {
		r.flushed[i] = []Op{AllocLocal(32), AllocLocal(32)}
		if r.wide {
			r.flushed[i] = []Op{r.vec()}
		}
	}
	for h := range r.index {
		r.index[h] = AllocLocal(32)
		if r.wide {
			r.index[h] = r.vec()
		}
	}
	Label(name + "_row")
	r.startRow()
	r.elements()
	r.endRow(ap, aq)
	LEAQ(Mem{Base: r.q, Index: r.k, Scale: 4}, r.q)
	ADDQ(Imm(4), ap)
	ADDQ(Imm(8), aq)
	DECQ(n)
	JNZ(LabelRef(name + "_row"))
	VZEROUPPER()
	RET()
}

func (r *problong) startRow() {
	r.l = nil
	for h := range r.halves() {
		v := r.vec()
		VMOVUPS(table["iota"].Offset(h*r.bytes()), v)
		move2(v, r.index[h])
		r.l = append(r.l, r.newProbs())
	}
	zero := r.vec()
	r.zero(zero)
	for _, f := range r.flushed {
		for _, op := range f {
			move2(zero, op)
		}
	}
	r.i = GP64()
	XORL(r.i.As32(), r.i.As32())
}

// move2 copies a register to a register or to memory.
func move2(src reg.Register, dst Op) {
	if _, ok := dst.(Mem); ok {
		VMOVUPS(src, dst)
		return
	}
	VMOVAPS(src, dst)
}

func (r *problong) elements() {
	whole, c, most := GP64(), GP64(), GP64()
	MOVQ(r.k, whole)
	SHRQ(Imm(4), whole)
	Label(r.label + "_chunk")
	MOVL(U32(16), most.As32())
	MOVQ(whole, c)
	CMPQ(c, most)
	CMOVQGT(most, c)
	SUBQ(c, whole)
	Label(r.label + "_vector")
	for h := range r.halves() {
		x := r.vec()
		at := Mem{Base: r.q, Index: r.i, Scale: 4, Disp: h * r.bytes()}
		VMOVUPS(at, x)
		if h == 0 {
			PREFETCHT0(at.Offset(prefetchAhead))
		}
		r.vector(h, x)
	}
	ADDQ(Imm(16), r.i)
	DECQ(c)
	JNZ(LabelRef(r.label + "_vector"))
	r.flush()
	TESTQ(whole, whole)
	JNZ(LabelRef(r.label + "_chunk"))

	rest := GP64()
	MOVQ(r.k, rest)
	ANDQ(Imm(15), rest)
	JZ(LabelRef(r.label + "_done"))
	mask := GP64()
	LEAQ(table["headMask"].Offset(64), mask)
	SHLQ(Imm(2), rest)
	SUBQ(rest, mask)
	for h := range r.halves() {
		x, m := r.vec(), r.vec()
		VMOVUPS(Mem{Base: mask, Disp: h * r.bytes()}, m)
		at := Mem{Base: r.q, Index: r.i, Scale: 4, Disp: h * r.bytes()}
		if r.wide {
			k := K()
			VPMOVD2M(m, k)
			VMOVUPS_Z(at, k, x)
		} else {
			VMASKMOVPS(at, m, x)
		}
		r.vector(h, x)
	}
	r.flush()
	Label(r.label + "_done")
}

// vector adds the elements x of half a row's lanes.
func (r *problong) vector(h int, x reg.VecVirtual) {
	index := r.index[h]
	r.prob(r.l[h], x, index)
	next := r.vec()
	if r.wide {
		VPADDD(table["int16"], index, index)
	} else {
		VMOVUPS(index, next)
		VPADDD(table["int16"], next, next)
		VMOVUPS(next, index)
	}
	r.widen(x, r.flushed[0], h)
}

// widen adds register h of float32 lanes to 8 float64: lane j and then lane j+8 to the j-th.
func (r *problong) widen(v reg.VecVirtual, sums []Op, h int) {
	if r.wide {
		for part := range 2 {
			d := ZMM()
			VCVTPS2PD(r.part(v, part), d)
			VADDPD(d, sums[0], sums[0])
		}
		return
	}
	for part, slot := range sums {
		d := YMM()
		VCVTPS2PD(r.part(v, part), d)
		VADDPD(slot, d, d)
		VMOVUPD(d, slot)
	}
}

func (r *problong) flush() {
	for h, l := range r.l {
		r.widen(l.h, r.flushed[1], h)
		r.widen(l.p2, r.flushed[2], h)
		r.resetProbs(l)
	}
}

func (r *problong) endRow(ap, aq reg.Register) {
	for i, off := range []int{offProbS, offProbH, offP2s} {
		storeSum(r.wide, r.flushed[i], Mem{Base: aq, Disp: off})
	}
	r.largest(ap)
}

// largest folds the lanes to the two largest elements, and finds the index of the first of the largest.
func (r *problong) largest(ap reg.Register) {
	l := r.l[0]
	top, second := YMM(), YMM()
	if r.wide {
		VEXTRACTI64X4(Imm(1), l.top, top)
		VEXTRACTI64X4(Imm(1), l.second, second)
		fold(l.top.AsY(), l.second.AsY(), top, second)
	} else {
		VMOVAPS(r.l[1].top, top)
		VMOVAPS(r.l[1].second, second)
		fold(l.top, l.second, top, second)
	}
	m, s := XMM(), XMM()
	r.upper(top, m)
	r.upper(second, s)
	fold(top.AsX(), second.AsX(), m, s)
	for _, imm := range []Constant{Imm(0x4e), Imm(0xb1)} {
		m2, s2 := XMM(), XMM()
		VPSHUFD(imm, m, m2)
		VPSHUFD(imm, s, s2)
		fold(m2, s2, m, s)
	}
	VMOVSS(m, Mem{Base: ap})
	VMOVSS(s, Mem{Base: ap, Disp: offTop2})
	arg := r.firstOf(m)
	r.upper(arg, s)
	VPMINUD(arg.AsX(), s, s)
	for _, imm := range []Constant{Imm(0x4e), Imm(0xb1)} {
		t := XMM()
		VPSHUFD(imm, s, t)
		VPMINUD(t, s, s)
	}
	VMOVSS(s, Mem{Base: ap, Disp: offTopArg})
}

// upper extracts the upper half of y, in the form that reaches all registers where there are more than 16.
func (g *gen) upper(y, x reg.Register) {
	if g.wide {
		VEXTRACTF32X4(Imm(1), y, x)
		return
	}
	VEXTRACTF128(Imm(1), y, x)
}

// fold merges the two largest elements m2 ≥ s2 of each lane into m ≥ s.
func fold(m2, s2, m, s reg.Register) {
	low := YMM()
	var l reg.Register = low
	if m.Size() == 16 {
		l = low.AsX()
	}
	VPMINUD(m2, m, l)
	VPMAXUD(m2, m, m)
	VPMAXUD(s2, s, s)
	VPMAXUD(l, s, s)
}

// firstOf returns the least index of the lanes j and j+8 whose largest element is m; lanes without it have all bits
// set.
func (r *problong) firstOf(m reg.VecVirtual) reg.VecVirtual {
	var lane []reg.VecVirtual
	for _, l := range r.l {
		b := r.vec()
		VPBROADCASTD(m.AsX(), b)
		if r.wide {
			equal, none := K(), r.vec()
			VPCMPD(Imm(4), b, l.top, equal) // lanes that differ
			VPTERNLOGD(Imm(0xff), none, none, none)
			VMOVDQA32(none, equal, l.arg)
			y := YMM()
			VEXTRACTI64X4(Imm(1), l.arg, y)
			VPMINUD(l.arg.AsY(), y, y)
			return y
		}
		none := YMM()
		VPCMPEQD(l.top, b, b)
		VPCMPEQD(none, none, none)
		VPXOR(none, b, b)
		VPOR(l.arg, b, b)
		lane = append(lane, b)
	}
	VPMINUD(lane[0], lane[1], lane[1])
	return lane[1]
}
