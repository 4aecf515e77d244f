package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gen is one function under construction: where its constants and those of the row are, in registers or in memory.
type gen struct {
	isa
	at     map[string]Op
	paused func() // what pause does
}

func newGen(s isa) *gen { return &gen{isa: s, at: map[string]Op{}} }

// c is a constant as an operand.
func (g *gen) c(name string) Op {
	if op, ok := g.at[name]; ok {
		return op
	}
	return table[name]
}

// preload keeps constants in registers, where there are enough of them.
func (g *gen) preload(names ...string) {
	if !g.wide {
		return
	}
	for _, n := range names {
		r := g.vec()
		VMOVUPS(table[n], r)
		g.at[n] = r
	}
}

// keep holds the value of r under a name: in r itself, or in a slot of the frame.
func (g *gen) keep(name string, r reg.VecVirtual) {
	if g.wide {
		g.at[name] = r
		return
	}
	m, ok := g.at[name]
	if !ok {
		m = AllocLocal(32)
		g.at[name] = m
	}
	VMOVUPS(r, m)
}

func move(src Op, dst reg.Register) {
	if _, ok := src.(Mem); ok {
		VMOVUPS(src, dst)
		return
	}
	VMOVAPS(src, dst)
}

// params broadcasts log2(e)/t.
func (g *gen) params(p reg.Register) {
	for _, v := range []struct {
		name string
		off  int
	}{{"hi", offHi}, {"lo", offLo}, {"pinv", offInv}} {
		r := g.vec()
		VBROADCASTSS(Mem{Base: p, Disp: v.off}, r)
		g.keep(v.name, r)
	}
}

// exponent returns mq, the integer nearest to mx·hi.
func (g *gen) exponent(mx reg.VecVirtual) reg.VecVirtual {
	mq := g.vec()
	move(g.c("magic"), mq)
	VFMADD231PS(g.c("hi"), mx, mq)
	VSUBPS(g.c("magic"), mq, mq)
	return mq
}

// biasOf returns magicBias - mq.
func (g *gen) biasOf(mq reg.VecVirtual) reg.VecVirtual {
	b := g.vec()
	move(g.c("magicBias"), b)
	VSUBPS(mq, b, b)
	return b
}

// scaling keeps the numbers that the maximum gives; and returns 1/e of the maximum, kept where e is stored.
func (g *gen) scaling(mx reg.VecVirtual, store bool) (inv reg.VecVirtual) {
	mq := g.exponent(mx)
	g.keep("bias", g.biasOf(mq))
	VSUBPS(g.c("zeroScale"), mq, mq)
	VMULPS(g.c("pinv"), mq, mq)
	g.keep("low", mq)
	inv = g.inverse(mx)
	if store {
		g.keep("inv", inv)
	}
	g.keep("max", mx)
	return inv
}

// inverse returns 1/e of the maximum.
func (g *gen) inverse(mx reg.VecVirtual) reg.VecVirtual {
	p, scale := g.exp(mx)
	VMULPS(scale, p, p)
	inv := g.vec()
	move(g.c("one"), inv)
	VDIVPS(p, inv, inv)
	return inv
}

// exp returns 2^r and 2^k with 2^(x·hi+x·lo-mq) = 2^r·2^k.
func (g *gen) exp(x reg.VecVirtual) (p, scale reg.VecVirtual) {
	r, t := g.reduce(x)
	return g.power(r), t
}

// reduce returns r and 2^k of exp.
func (g *gen) reduce(x reg.VecVirtual) (r, scale reg.VecVirtual) {
	t := g.vec()
	r = g.vec()
	move(g.c("bias"), t)
	VFMADD231PS(g.c("hi"), x, t)
	VSUBPS(g.c("bias"), t, r)
	VFMSUB231PS(g.c("hi"), x, r)
	VFMADD231PS(g.c("lo"), x, r)
	VPSLLD(Imm(23), t, t)
	return r, t
}

// power returns 2^r.
func (g *gen) power(r reg.VecVirtual) reg.VecVirtual {
	p := g.vec()
	move(g.c(expNames[0]), p)
	for _, n := range expNames[1:] {
		VFMADD213PS(g.c(n), r, p)
	}
	return p
}

// lanesum are the float32 lanes of a row's sums, one register's worth.
type lanesum struct{ s, d, q, second reg.VecVirtual }

func (g *gen) newSums() lanesum {
	l := lanesum{g.vec(), g.vec(), g.vec(), g.vec()}
	g.resetSums(l)
	g.zero(l.second)
	return l
}

func (g *gen) zero(r reg.VecVirtual) {
	if g.wide {
		VPXORD(r, r, r)
		return
	}
	VPXOR(r, r, r)
}

func (g *gen) resetSums(l lanesum) {
	g.zero(l.s)
	g.zero(l.d)
	move(g.c("sumP2Start"), l.q)
}

// add adds x to l; where out is given it takes exp((x-max)/t). tail names the lanes that count, nil for all.
// It returns the mask of the elements that differ from the maximum, those that do not count included.
func (g *gen) add(l lanesum, x reg.VecVirtual, out *Mem, tail Op) reg.Register {
	raised := g.vec()
	VMAXPS(g.c("low"), x, raised)
	v := element{x: x}
	v.e, v.scale = g.exp(raised)
	if !g.wide {
		return g.add2(l, v, out, tail)
	}
	return g.add512(l, v, out, tail)
}

// element is x and what exp makes of it.
type element struct{ x, e, scale reg.VecVirtual }

// add512 is the last third of add.
func (g *gen) add512(l lanesum, of element, out *Mem, tail Op) reg.Register {
	x, e := of.x, of.e
	differ := K()
	VCMPPS(Imm(4), g.c("max"), x, differ)
	VMULPS_Z(of.scale, e, differ, e)
	if out != nil {
		v, o := g.vec(), g.vec()
		VMULPS(g.c("inv"), e, v)
		move(g.c("one"), o)
		VMINPS(g.c("one"), v, differ, o)
		VMOVUPS(o, *out)
	}
	if tail != nil {
		k := K()
		KMOVW(tail, k)
		VMOVAPS_Z(e, k, e)
	}
	g.accumulate(l, x, e)
	return differ
}

func (g *gen) add2(l lanesum, of element, out *Mem, tail Op) reg.Register {
	x, e, scale := of.x, of.e, of.scale
	differ := g.vec()
	VMULPS(scale, e, e)
	VCMPPS(Imm(4), g.c("max"), x, differ)
	VANDPS(differ, e, e)
	if out != nil {
		v, one := scale, YMM()
		VMULPS(g.c("inv"), e, v)
		VMINPS(g.c("one"), v, v)
		VMOVUPS(g.c("one"), one)
		VBLENDVPS(differ, v, one, v)
		VMOVUPS(v, *out)
	}
	if tail != nil {
		VANDPS(tail, e, e)
	}
	g.accumulate(l, x, e)
	return differ
}

func (g *gen) accumulate(l lanesum, x, e reg.VecVirtual) {
	VADDPS(e, l.s, l.s)
	VFMADD231PS(e, e, l.q)
	VMAXPS(e, l.second, l.second)
	VSUBPS(g.c("max"), x, x)
	VFMADD231PS(x, e, l.d)
}
