package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// prefetchAhead is how far ahead of the maximum's reads lines are asked for. They come into the second cache only: the
// first one's few buffers for lines under way are left to the row itself, which is asked for prefetchRow ahead.
const prefetchAhead, prefetchRow = 4096, 1024

// longMax: the maximum of one long row.
func longMax(s isa) {
	TEXT("longMax"+s.suffix, NOSPLIT, "func(z *float32, k int) float32")
	Doc("longMax" + s.suffix + " returns the maximum of k ≥ 64 scores.")
	Pragma("noescape")
	g := newGen(s)
	z, k := Load(Param("z"), GP64()), Load(Param("k"), GP64())
	m := g.vecs()
	for h := range m {
		VMOVUPS(Mem{Base: z, Index: k, Scale: 4, Disp: -64 + h*g.bytes()}, m[h])
	}
	SHRQ(Imm(4), k)
	Label("longMax" + s.suffix + "_loop")
	PREFETCHT0(Mem{Base: z, Disp: prefetchAhead})
	for h := range m {
		VMAXPS(Mem{Base: z, Disp: h * g.bytes()}, m[h], m[h])
	}
	ADDQ(Imm(64), z)
	DECQ(k)
	JNZ(LabelRef("longMax" + s.suffix + "_loop"))
	x := g.reduceMax(m)
	Store(x, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// vecs returns registers for 16 float32.
func (g *gen) vecs() []reg.VecVirtual {
	v := make([]reg.VecVirtual, g.halves())
	for h := range v {
		v[h] = g.vec()
	}
	return v
}

// reduceMax returns the largest of 16 lanes.
func (g *gen) reduceMax(v []reg.VecVirtual) reg.VecVirtual {
	y, x, t := YMM(), XMM(), XMM()
	if g.wide {
		VEXTRACTF64X4(Imm(1), v[0], y)
		VMAXPS(v[0].AsY(), y, y)
		VEXTRACTF64X2(Imm(1), y, x)
	} else {
		VMAXPS(v[0], v[1], y)
		VEXTRACTF128(Imm(1), y, x)
	}
	VMAXPS(y.AsX(), x, x)
	VPSHUFD(Imm(0x4e), x, t)
	VMAXPS(t, x, x)
	VPSHUFD(Imm(0xb1), x, t)
	VMAXPS(t, x, x)
	return x
}

// long is the state of longRows.
type long struct {
	*gen
	label           string
	store           bool
	z, e, next      reg.GPVirtual
	k, i            reg.GPVirtual
	count, arg      reg.GPVirtual
	ahead           Mem // rows between the one at work and the one whose maximum it finds
	rest, big, bits Mem // elements beyond whole vectors; the largest uint32; the tail's lanes as bits
	l               []lanesum
	max             []reg.VecVirtual
	flushed         [3][]Op // 8 float64 lanes of s, d, q
}

// longRows: n ≤ 16 rows of k ≥ 64 scores. The maxima of the first `ahead` are in a; row i finds that of row i+ahead on
// its way. Two rows ahead hide the way from a maximum to its exponential, which a row of thousands does not notice: it
// is cheaper to have one row fewer read before the first is computed.
func longRows(s isa, store bool) {
	name := "longRows"
	if store {
		name += "E"
	}
	name += s.suffix
	TEXT(name, 0, "func(a *byte, e, z *float32, n, k, left, ahead int, p *byte)")
	Doc(name + " fills the sums of n ≤ 16 rows of k ≥ 64 scores, left ≥ n of which follow from z; and maxima up to " +
		"row n+ahead.")
	Pragma("noescape")
	r := &long{gen: newGen(s), label: name, store: store}
	r.preload(expNames...)
	r.preload("sumP2Start")
	p := Load(Param("p"), GP64())
	r.params(p)
	ap, aq := GP64(), GP64()
	Load(Param("a"), ap)
	MOVQ(ap, aq)
	r.z, r.k = GP64(), GP64()
	Load(Param("z"), r.z)
	Load(Param("k"), r.k)
	if store {
		r.e = GP64()
		Load(Param("e"), r.e)
	}
	n, left := r.counter("n"), r.counter("left")
	r.ahead = r.counter("ahead")
	r.tailBits()

	Label(name + "_row")
	r.next = GP64()
	MOVQ(r.ahead, r.next)
	IMULQ(r.k, r.next)
	LEAQ(Mem{Base: r.z, Index: r.next, Scale: 4}, r.next)
	t := GP64()
	MOVQ(left, t)
	CMPQ(t, r.ahead)
	CMOVQLE(r.z, r.next)
	r.startRow(ap)
	r.elements()
	r.endRow(ap, aq)
	LEAQ(Mem{Base: r.z, Index: r.k, Scale: 4}, r.z)
	if store {
		LEAQ(Mem{Base: r.e, Index: r.k, Scale: 4}, r.e)
	}
	ADDQ(Imm(4), ap)
	ADDQ(Imm(8), aq)
	DECQ(left)
	DECQ(n)
	JNZ(LabelRef(name + "_row"))
	VZEROUPPER()
	RET()
}

// counter copies a parameter to the frame, where it counts down.
func (r *long) counter(name string) Mem {
	m, t := AllocLocal(8), GP64()
	Load(Param(name), t)
	MOVQ(t, m)
	return m
}

func (r *long) tailBits() {
	r.rest, r.bits, r.big = AllocLocal(8), AllocLocal(8), AllocLocal(8)
	t, ones := GP64(), GP64()
	MOVQ(r.k, t)
	ANDQ(Imm(15), t)
	MOVQ(t, r.rest)
	XORQ(Imm(15), t) // 15 - rest
	INCQ(t)
	MOVL(U32(0xffff), ones.As32())
	SHLXQ(t, ones, ones)
	MOVWLZX(ones.As16(), ones.As32())
	MOVQ(ones, r.bits)
	MOVQ(I32(-1), r.big)
}

func (r *long) startRow(ap reg.Register) {
	mx := r.vec()
	VBROADCASTSS(Mem{Base: ap, Disp: offMax}, mx)
	VMOVSS(r.scaling(mx, r.store).AsX(), Mem{Base: ap, Disp: offInverse})
	r.l, r.max = nil, r.vecs()
	for h := range r.halves() {
		r.l = append(r.l, r.newSums())
		VMOVUPS(Mem{Base: r.next, Disp: h * r.bytes()}, r.max[h])
	}
	zero := r.vec()
	r.zero(zero)
	for i := range r.flushed {
		if r.wide {
			v := r.vec()
			r.zero(v)
			r.flushed[i] = []Op{v}
			continue
		}
		r.flushed[i] = []Op{AllocLocal(32), AllocLocal(32)}
		VMOVUPS(zero, r.flushed[i][0])
		VMOVUPS(zero, r.flushed[i][1])
	}
	r.count, r.arg, r.i = GP64(), GP64(), GP64()
	XORL(r.count.As32(), r.count.As32())
	MOVL(U32(math.MaxUint32), r.arg.As32())
}

func (r *long) elements() {
	CMPQ(r.rest, Imm(0))
	JEQ(LabelRef(r.label + "_whole"))
	MOVQ(r.k, r.i)
	SUBQ(Imm(16), r.i)
	r.vector(true)
	Label(r.label + "_whole")
	XORL(r.i.As32(), r.i.As32())
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
	r.vector(false)
	ADDQ(Imm(16), r.i)
	DECQ(c)
	JNZ(LabelRef(r.label + "_vector"))
	r.flush()
	TESTQ(whole, whole)
	JNZ(LabelRef(r.label + "_chunk"))
}

// vector adds the 16 elements from i on.
func (r *long) vector(tail bool) {
	differ, none := GP64(), ""
	mask := GP64()
	if tail && !r.wide {
		MOVQ(r.rest, mask)
		t := GP64()
		LEAQ(table["tailMask"], t)
		LEAQ(Mem{Base: t, Index: mask, Scale: 4}, mask)
	}
	for h := range r.halves() {
		x := r.vec()
		VMOVUPS(Mem{Base: r.z, Index: r.i, Scale: 4, Disp: h * r.bytes()}, x)
		ahead := Mem{Base: r.next, Index: r.i, Scale: 4, Disp: h * r.bytes()}
		VMAXPS(ahead, r.max[h], r.max[h])
		if h == 0 && !tail {
			PREFETCHT1(ahead.Offset(prefetchAhead))
			PREFETCHT0(Mem{Base: r.z, Index: r.i, Scale: 4, Disp: prefetchRow})
		}
		var out *Mem
		if r.store {
			out = &Mem{Base: r.e, Index: r.i, Scale: 4, Disp: h * r.bytes()}
		}
		var lanes Op
		if tail && r.wide {
			lanes = r.bits
		} else if tail {
			lanes = Mem{Base: mask, Disp: h * r.bytes()}
		}
		k := r.add(r.l[h], x, out, lanes)
		switch {
		case r.wide && !tail: // few vectors have one that equals the maximum: the branch is cheaper than the arithmetic
			none = r.label + "_none"
			KORTESTW(k, k)
			JCS(LabelRef(none))
			KMOVW(k, differ.As32())
		case r.wide:
			KMOVW(k, differ.As32())
		case h == 0:
			VMOVMSKPS(k, differ.As32())
		default:
			VMOVMSKPS(k, mask.As32())
			SHLL(Imm(8), mask.As32())
			ORL(mask.As32(), differ.As32())
		}
	}
	XORL(U32(0xffff), differ.As32())
	if tail {
		ANDL(r.bits, differ.As32())
	}
	t := GP64()
	POPCNTL(differ.As32(), t.As32())
	ADDL(t.As32(), r.count.As32())
	TZCNTL(differ.As32(), t.As32()) // sets the carry where no element equals the maximum
	LEAQ(Mem{Base: r.i, Index: t, Scale: 1}, t)
	CMOVLCS(r.big, t.As32())
	CMPL(t.As32(), r.arg.As32())
	CMOVLCS(t.As32(), r.arg.As32())
	if none != "" {
		Label(none)
	}
}

// flush adds lane j and then lane j+8 to the j-th of 8 float64.
func (r *long) flush() {
	for i := range r.flushed {
		lane := func(h int) reg.VecVirtual { return []reg.VecVirtual{r.l[h].s, r.l[h].d, r.l[h].q}[i] }
		if r.wide {
			v, y, acc := ZMM(), YMM(), r.flushed[i][0]
			VCVTPS2PD(lane(0).AsY(), v)
			VADDPD(v, acc, acc)
			VEXTRACTF64X4(Imm(1), lane(0), y)
			VCVTPS2PD(y, v)
			VADDPD(v, acc, acc)
			continue
		}
		for part, slot := range r.flushed[i] {
			acc, v, x := YMM(), YMM(), XMM()
			VMOVUPS(slot, acc)
			for h := range 2 {
				VEXTRACTF128(Imm(uint64(part)), lane(h), x)
				VCVTPS2PD(x, v)
				VADDPD(v, acc, acc)
			}
			VMOVUPS(acc, slot)
		}
	}
	for h := range r.l {
		r.resetSums(r.l[h])
	}
}

// storeSum stores the sum of 8 float64 lanes: of a ZMM where it is wide, else of two places of 4.
func storeSum(wide bool, lanes []Op, to Mem) {
	y, x, t := YMM(), XMM(), XMM()
	if wide {
		z := lanes[0].(reg.VecVirtual)
		VEXTRACTF64X4(Imm(1), z, y)
		VADDPD(z.AsY(), y, y)
		VEXTRACTF64X2(Imm(1), y, x)
	} else {
		VMOVUPS(lanes[0], y)
		VADDPD(lanes[1], y, y)
		VEXTRACTF128(Imm(1), y, x)
	}
	VADDPD(y.AsX(), x, x)
	VPERMILPD(Imm(1), x, t)
	VADDSD(t, x, x)
	VMOVSD(x, to)
}

func (r *long) endRow(ap, aq reg.Register) {
	for i, off := range []int{offS, offD, offQ} {
		storeSum(r.wide, r.flushed[i], Mem{Base: aq, Disp: off})
	}
	second := make([]reg.VecVirtual, r.halves())
	for h := range second {
		second[h] = r.l[h].second
	}
	VMOVSS(r.reduceMax(second), Mem{Base: ap, Disp: offSecond})
	to := GP64()
	MOVQ(r.ahead, to)
	VMOVSS(r.reduceMax(r.max), Mem{Base: ap, Index: to, Scale: 4, Disp: offMax})
	MOVL(r.count.As32(), Mem{Base: ap, Disp: offCount})
	MOVL(r.arg.As32(), Mem{Base: ap, Disp: offArg})
}
