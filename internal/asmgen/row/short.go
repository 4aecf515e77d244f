package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// short is the state of shortRows: 16 rows at once, a row per lane, through a buffer of columns.
type short struct {
	*gen
	label string
	store bool
	k     reg.GPVirtual
	kAt   int // where the frame has k
	buf   Mem // columns of 16 lanes, from its first address that 64 divides
	a     reg.Register
}

// shortRows: 16 rows of 4 ≤ k < 64 scores. The last four columns are transposed once more if 4 does not divide k.
func shortRows(s isa, store bool) {
	name := "shortRows"
	if store {
		name += "E"
	}
	name += s.suffix
	TEXT(name, 0, "func(a *byte, e, z *float32, k int, p *byte)")
	Doc(name + " fills the sums of 16 rows of 4 ≤ k < 64 scores.")
	Pragma("noescape")
	r := &short{gen: newGen(s), label: name, store: store, kAt: 24, buf: AllocLocal(65 * 64)}
	r.k, r.a = GP64(), GP64()
	Load(Param("k"), r.k)
	max := r.transposed()
	Load(Param("a"), r.a)
	r.saveMax(max)
	zero := r.vec()
	r.zero(zero)
	for off := offS; off < offQ+128; off += r.bytes() {
		VMOVUPS(zero, Mem{Base: r.a, Disp: off})
	}
	p := Load(Param("p"), GP64())
	r.preload(expNames...)
	r.preload("sumP2Start")
	r.params(p)
	for h := range r.halves() {
		r.columns(h)
	}
	if store {
		r.groups("e", "out", func(g *group) { g.save(r) })
	}
	VZEROUPPER()
	RET()
}

// transposed fills the columns and returns the rows' maxima.
func (r *short) transposed() []reg.VecVirtual {
	max := r.vecs()
	for h := range max {
		VMOVUPS(table["negInf"], max[h])
	}
	r.groups("z", "in", func(g *group) { g.load(r, max) })
	return max
}

func (r *short) saveMax(max []reg.VecVirtual) {
	for h := range max {
		VMOVUPS(max[h], Mem{Base: r.a, Disp: offMax + h*r.bytes()})
	}
}

// group is four columns of 16 rows: rows j, j+4, j+8 and j+12 share a register.
type group struct {
	base          [4]reg.GPVirtual // of rows 0, 4, 8, 12
	stride, three reg.GPVirtual
	buf           reg.GPVirtual
}

// row is the address of row j+4i, four columns of it.
func (g *group) row(i, j int) Mem {
	m := Mem{Base: g.base[i]}
	switch j {
	case 1, 2:
		m.Index, m.Scale = g.stride, uint8(j)
	case 3:
		m.Index, m.Scale = g.three, 1
	}
	return m
}

// groups runs body over the columns by fours, the last ones once more where they overlap.
func (r *short) groups(param, label string, body func(*group)) {
	g := r.firstGroup(param)
	n, t := GP64(), GP64()
	MOVQ(r.k, n)
	SHRQ(Imm(2), n)
	loop := r.label + "_" + label
	Label(loop)
	body(g)
	for _, b := range g.base {
		ADDQ(Imm(16), b)
	}
	ADDQ(U32(256), g.buf)
	DECQ(n)
	JNZ(LabelRef(loop))
	MOVQ(r.k, t)
	ANDQ(Imm(3), t)
	JZ(LabelRef(loop + "_done"))
	SUBQ(Imm(4), t)
	for i, b := range g.base {
		LEAQ(Mem{Base: b, Index: t, Scale: 4}, g.base[i])
	}
	SHLQ(Imm(6), t)
	ADDQ(t, g.buf)
	body(g)
	Label(loop + "_done")
}

// firstGroup is that of the columns 0 to 3.
func (r *short) firstGroup(param string) *group {
	g := &group{stride: GP64(), three: GP64(), buf: GP64()}
	LEAQ(Mem{Base: r.k, Index: r.k, Scale: 1}, g.stride)
	ADDQ(g.stride, g.stride)
	LEAQ(Mem{Base: g.stride, Index: g.stride, Scale: 2}, g.three)
	for i := range g.base {
		g.base[i] = GP64()
		if i == 0 {
			Load(Param(param), g.base[0])
			continue
		}
		LEAQ(Mem{Base: g.base[i-1], Index: g.stride, Scale: 4}, g.base[i])
	}
	r.columnsAt(g.buf)
	return g
}

// columnsAt loads the address of the columns.
func (r *short) columnsAt(p reg.GPVirtual) {
	LEAQ(r.buf.Offset(63), p)
	ANDQ(I32(-64), p)
}

// transpose turns rows j, j+4, … of four columns into columns, and columns into rows.
func (r *short) transpose(v [4]reg.VecVirtual) [4]reg.VecVirtual {
	a, b, c, d := r.vec(), r.vec(), r.vec(), r.vec()
	VUNPCKLPS(v[1], v[0], a)
	VUNPCKHPS(v[1], v[0], b)
	VUNPCKLPS(v[3], v[2], c)
	VUNPCKHPS(v[3], v[2], d)
	VUNPCKLPD(c, a, v[0])
	VUNPCKHPD(c, a, v[1])
	VUNPCKLPD(d, b, v[2])
	VUNPCKHPD(d, b, v[3])
	return v
}

func (g *group) load(r *short, max []reg.VecVirtual) {
	for h := range r.halves() {
		var v [4]reg.VecVirtual
		for j := range v {
			v[j] = r.vec()
			if r.wide {
				VBROADCASTF32X4(g.row(0, j), v[j])
				for i := 1; i < 4; i++ {
					VINSERTF32X4(Imm(uint64(i)), g.row(i, j), v[j], v[j])
				}
				continue
			}
			VBROADCASTF128(g.row(2*h, j), v[j])
			VINSERTF128(Imm(1), g.row(2*h+1, j), v[j], v[j])
		}
		for j, c := range r.transpose(v) {
			if max != nil {
				VMAXPS(c, max[h], max[h])
			}
			VMOVUPS(c, Mem{Base: g.buf, Disp: 64*j + h*r.bytes()})
		}
	}
}

func (g *group) save(r *short) {
	for h := range r.halves() {
		var v [4]reg.VecVirtual
		for j := range v {
			v[j] = r.vec()
			VMOVUPS(Mem{Base: g.buf, Disp: 64*j + h*r.bytes()}, v[j])
		}
		for j, c := range r.transpose(v) {
			if r.wide {
				VMOVUPS(c.AsX(), g.row(0, j))
				for i := 1; i < 4; i++ {
					VEXTRACTF32X4(Imm(uint64(i)), c, g.row(i, j))
				}
				continue
			}
			VMOVUPS(c.AsX(), g.row(2*h, j))
			VEXTRACTF128(Imm(1), c, g.row(2*h+1, j))
		}
	}
}

// columnSums are the sums of one register's rows: the vectors of lanesum, and what concerns the maximum.
type columnSums struct {
	lanesum
	at                reg.GPVirtual  // the next column
	count, arg, index reg.VecVirtual // AVX2
	differ            reg.VecVirtual // AVX-512: a bit for each of 16 columns that differs from the maximum
	bits              reg.GPVirtual  // AVX-512: where columnBits has the bit of the next column
}

// startColumns keeps what the maxima of half h give, and begins its sums.
func (r *short) startColumns(h int) *columnSums {
	mx := r.vec()
	VMOVUPS(Mem{Base: r.a, Disp: offMax + h*r.bytes()}, mx)
	VMOVUPS(r.scaling(mx, r.store), Mem{Base: r.a, Disp: offInverse + h*r.bytes()})
	c := &columnSums{lanesum: r.newSums(), at: GP64()}
	r.columnsAt(c.at)
	if r.wide {
		c.differ, c.bits = r.vec(), GP64()
		return c
	}
	c.count, c.arg, c.index = r.vec(), r.vec(), r.vec()
	VPBROADCASTD(NewParamAddr("k", r.kAt), c.count)
	VPBROADCASTD(table["abs"], c.arg) // any number ≥ k
	r.zero(c.index)
	if h > 0 {
		ADDQ(Imm(uint64(h*r.bytes())), c.at)
	}
	return c
}

// startAhead and fetch ask for lines of rows to come: k scores of 16 rows are k lines, one for every column.
func (r *short) startAhead(h int) reg.Register {
	if h > 0 {
		return nil
	}
	return Load(Param("z"), GP64())
}

func fetch(ahead reg.Register) {
	if ahead != nil {
		PREFETCHT0(Mem{Base: ahead, Disp: prefetchAhead})
		ADDQ(Imm(64), ahead)
	}
}

// startChunk is called before the first and every 16th column after it.
func (r *short) startChunk(c *columnSums) {
	if r.wide {
		LEAQ(table["columnBits"], c.bits)
		r.zero(c.differ)
	}
}

// column adds the next column to c.
func (r *short) column(c *columnSums) {
	at := Mem{Base: c.at}
	var out *Mem
	if r.store {
		out = &at
	}
	if r.wide {
		x := r.vec()
		VMOVUPS(at, x)
		differ := r.add(c.lanesum, x, out, nil)
		VPORD_BCST(Mem{Base: c.bits}, c.differ, differ, c.differ)
		ADDQ(Imm(4), c.bits)
	} else {
		x, cand := r.vec(), r.vec()
		VMOVUPS(at, x)
		differ := r.add(c.lanesum, x, out, nil)
		VPADDD(differ, c.count, c.count)
		VPOR(differ, c.index, cand)
		VPMINUD(cand, c.arg, c.arg)
		VPADDD(table["int1"], c.index, c.index)
	}
	ADDQ(Imm(64), c.at)
}

// equals returns how many columns of the last 16 equal the maximum, and the first of them, or a number above 2^31.
func (r *short) equals(c *columnSums) (count, first reg.VecVirtual) {
	equal, v, u := r.vec(), r.vec(), r.vec()
	// c.bits is now where the mask of as many columns stands.
	VPANDND_BCST(Mem{Base: c.bits, Disp: columnMasks}, c.differ, equal)
	VPANDD(table["nibbles"], equal, v)
	VPSRLD(Imm(4), equal, u)
	VPANDD(table["nibbles"], u, u)
	VMOVDQU32(table["nibbleCounts"], c.differ)
	VPSHUFB(v, c.differ, v)
	VPSHUFB(u, c.differ, u)
	VPADDD(u, v, v)
	VPSRLD(Imm(8), v, u)
	VPADDD(u, v, v)
	VPANDD(table["lowByte"], v, v)
	// The lowest bit as a float32 has its place in the exponent; none, that of 0 less 127, is a large uint32.
	r.zero(u)
	VPSUBD(equal, u, u)
	VPANDD(equal, u, u)
	VCVTDQ2PS(u, u)
	VPSRLD(Imm(23), u, u)
	VPSUBD(table["int127"], u, u)
	return v, u
}

// saveColumns stores what is not summed in float64.
func (r *short) saveColumns(c *columnSums, h int) {
	VMOVUPS(c.second, Mem{Base: r.a, Disp: offSecond + h*r.bytes()})
	if !r.wide {
		VMOVUPS(c.count, Mem{Base: r.a, Disp: offCount + h*r.bytes()})
		VMOVUPS(c.arg, Mem{Base: r.a, Disp: offArg + h*r.bytes()})
	}
}

// columns adds the columns of one register's rows, one after the other.
func (r *short) columns(h int) {
	label := r.label + "_columns" + string(rune('0'+h))
	s := r.startColumns(h)
	n, c, most, from, ahead := GP64(), GP64(), GP64(), GP64(), r.startAhead(h)
	MOVQ(r.k, n)
	if r.wide {
		XORL(from.As32(), from.As32())
		VMOVDQU32(table["abs"], s.differ) // any number ≥ k
		VMOVUPS(s.differ, Mem{Base: r.a, Disp: offArg})
		r.zero(s.differ)
		VMOVUPS(s.differ, Mem{Base: r.a, Disp: offCount})
	}
	Label(label)
	MOVL(U32(16), most.As32())
	MOVQ(n, c)
	CMPQ(c, most)
	CMOVQGT(most, c)
	SUBQ(c, n)
	r.startChunk(s)
	Label(label + "_next")
	fetch(ahead)
	r.column(s)
	DECQ(c)
	JNZ(LabelRef(label + "_next"))
	if r.wide {
		count, first := r.equals(s)
		VPADDD(Mem{Base: r.a, Disp: offCount}, count, count)
		VMOVUPS(count, Mem{Base: r.a, Disp: offCount})
		VPBROADCASTD(from.As32(), count)
		VPADDD(count, first, first)
		VPMINUD(Mem{Base: r.a, Disp: offArg}, first, first)
		VMOVUPS(first, Mem{Base: r.a, Disp: offArg})
		ADDQ(Imm(16), from)
	}
	r.flush(s.lanesum, h)
	TESTQ(n, n)
	JNZ(LabelRef(label))
	r.saveColumns(s, h)
}

// flush adds each lane to its row's float64.
func (r *short) flush(l lanesum, h int) {
	for i, v := range []reg.VecVirtual{l.s, l.d, l.q} {
		lo := Mem{Base: r.a, Disp: offS + (offD-offS)*i + 2*h*r.bytes()}
		hi := lo.Offset(r.bytes())
		d := r.vec()
		if r.wide {
			y := YMM()
			VCVTPS2PD(v.AsY(), d)
			VADDPD(lo, d, d)
			VMOVUPD(d, lo)
			VEXTRACTF64X4(Imm(1), v, y)
			VCVTPS2PD(y, d)
		} else {
			x := XMM()
			VCVTPS2PD(v.AsX(), d)
			VADDPD(lo, d, d)
			VMOVUPD(d, lo)
			VEXTRACTF128(Imm(1), v, x)
			VCVTPS2PD(x, d)
		}
		VADDPD(hi, d, d)
		VMOVUPD(d, hi)
	}
	r.resetSums(l)
}
