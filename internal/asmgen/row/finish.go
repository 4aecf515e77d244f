package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// finish makes 16 rows of their sums; a bit of the result is a row that the float64 path must do.
func finish(s isa) {
	name := "finish" + s.suffix
	TEXT(name, 0, "func(rows *byte, a *byte, p *byte) uint32")
	Doc(name + " makes 16 rows of their sums and returns those that it cannot.")
	Pragma("noescape")
	g := &finisher{gen: newGen(s), second: AllocLocal(64)}
	g.rows, g.a = GP64(), GP64()
	Load(Param("rows"), g.rows)
	Load(Param("a"), g.a)
	p := Load(Param("p"), GP64())
	g.params(p)
	g.doubleParams(p)
	bad := g.all(func() {})
	Store(bad.As32(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

type finisher struct {
	*gen
	rows, a reg.GPVirtual
	second  Mem  // 16 float32
	narrow  bool // the sums are float32 still
}

// doubleParams broadcasts 1/t and the least sum of the other classes, in the frame: the finish needs the registers.
func (g *gen) doubleParams(p reg.Register) {
	for _, v := range []struct {
		name string
		off  int
	}{{"beta", offBeta}, {"rest", offRest}} {
		r, m := g.vec(), AllocLocal(g.bytes())
		VBROADCASTSD(Mem{Base: p, Disp: v.off}, r)
		VMOVUPS(r, m)
		g.at[v.name] = m
	}
}

// all makes the 16 rows and returns those that it cannot; AVX-512 does other work meanwhile.
func (g *finisher) all(other func()) reg.GPVirtual {
	good, ok := AllocLocal(4), AllocLocal(4) // in the frame: the other work needs registers
	MOVL(g.singles().As32(), good)
	MOVL(U32(0), ok)
	w := g.bytes() / 8
	var parts []func()
	for at := 0; at < 16; at += w {
		parts = append(parts, func() {
			m := GP64()
			g.doubles(at, m)
			SHLL(Imm(uint64(at)), m.As32())
			ORL(m.As32(), ok)
		})
	}
	if g.wide { // AVX2 has too few registers
		g.interleave(append([]func(){other}, parts...)...)
	} else {
		for _, part := range parts {
			part()
		}
	}
	for i := range 16 {
		MOVB(Imm(1), Mem{Base: g.rows, Disp: i*rowBytes + offOK})
	}
	bad := GP64()
	MOVL(ok, bad.As32())
	ANDL(good, bad.As32())
	XORL(U32(0xffff), bad.As32())
	return bad
}

// singles is the part in float32: the runner-up. It returns the lanes whose maximum is in range.
func (g *finisher) singles() reg.GPVirtual {
	good := GP64()
	for h := range g.halves() {
		at := h * g.bytes()
		mx := g.vec()
		VMOVUPS(Mem{Base: g.a, Disp: offMax + at}, mx)
		mq := g.exponent(mx)
		second := g.vec()
		VMOVUPS(Mem{Base: g.a, Disp: offInverse + at}, second)
		VMULPS(Mem{Base: g.a, Disp: offSecond + at}, second, second)
		VMINPS(table["one"], second, second)
		VMOVUPS(second, g.second.Offset(at))
		if g.wide {
			VPANDD(table["abs"], mq, mq)
		} else {
			VANDPS(table["abs"], mq, mq)
		}
		m := g.mask(false, 2, table["maxExponent"], mq)
		if h == 0 {
			MOVL(m.As32(), good.As32())
		} else {
			SHLL(Imm(8), m.As32())
			ORL(m.As32(), good.As32())
		}
	}
	return good
}

// mask compares b with a (b OP a) and returns a bit per lane.
func (g *gen) mask(double bool, op uint64, a Op, b reg.VecVirtual) reg.GPVirtual {
	m := GP64()
	switch {
	case g.wide && double:
		k := K()
		VCMPPD(Imm(op), a, b, k)
		KMOVW(k, m.As32())
	case g.wide:
		k := K()
		VCMPPS(Imm(op), a, b, k)
		KMOVW(k, m.As32())
	case double:
		v := g.vec()
		VCMPPD(Imm(op), a, b, v)
		VMOVMSKPD(v, m.As32())
	default:
		v := g.vec()
		VCMPPS(Imm(op), a, b, v)
		VMOVMSKPS(v, m.As32())
	}
	return m
}

func (g *finisher) f32to64(m Mem) reg.VecVirtual {
	v := g.vec()
	VCVTPS2PD(m, v)
	return v
}

// sum is one of the rows' sums, from row at on.
func (g *finisher) sum(off, at int) Op {
	if g.narrow {
		return g.f32to64(Mem{Base: g.a, Disp: off + 4*at})
	}
	return Mem{Base: g.a, Disp: off + 8*at}
}

// doubles does the rows from at on and sets the bits of those that are good in ok.
func (g *finisher) doubles(at int, ok reg.GPVirtual) {
	field := func(off, size int) Mem { return Mem{Base: g.a, Disp: off + at*size} }
	count, c := g.vec(), g.f32to64(field(offInverse, 4))
	VCVTDQ2PD(field(offCount, 4), count)
	tied := g.vec()
	VSUBPD(table["unit"], count, tied)

	s := g.vec()
	VMULPD(g.sum(offS, at), c, s)
	enough := g.vec()
	VMAXPD(tied, s, enough)
	m := g.mask(true, 13, g.c("rest"), enough) // ≥, false for NaN

	second := g.f32to64(g.second.Offset(4 * at))
	VMINPD(table["unit"], tied, tied)
	VMAXPD(tied, second, second)

	sum, conf, rest := g.vec(), g.vec(), g.vec()
	VADDPD(s, count, sum)
	move(table["unit"], conf)
	VDIVPD(sum, conf, conf)
	g.pause()
	VSUBPD(count, sum, rest)
	VSUBPD(rest, s, rest)
	lnSum := g.ln(sum)
	VFMADD231PD(conf, rest, lnSum)
	VMULPD(conf, second, second)

	sumP2 := g.vec()
	VCVTDQ2PD(field(offCount, 4), count) // once more: there are not enough registers to keep it
	VMULPD(c, c, sumP2)
	VFMADD132PD(g.sum(offQ, at), count, sumP2)
	VMULPD(conf, sumP2, sumP2)
	VMULPD(conf, sumP2, sumP2)

	d, entropy := g.vec(), c
	move(g.sum(offD, at), d)
	md := g.mask(true, 2, g.zeroOp(), d) // ≤ 0, false for NaN
	ANDL(md.As32(), m.As32())
	MOVL(m.As32(), ok.As32())
	VMULPD(d, c, d)
	VMULPD(g.c("beta"), d, d)
	move(lnSum, entropy)
	VFNMADD231PD(d, conf, entropy)

	mx := g.f32to64(field(offMax, 4))
	top := g.vec()
	g.zero(top)
	VFMADD231PD(g.c("beta"), mx, top)
	VFMADD231PD(g.c("beta"), mx, lnSum)
	arg := g.vec()
	VPMOVSXDQ(field(offArg, 4), arg)
	g.write(at, []reg.VecVirtual{arg, top, lnSum, conf, second, entropy, sumP2, conf})
}

func (g *gen) zeroOp() Op {
	z := g.vec()
	g.zero(z)
	return z
}

// ln returns ln x of x ≥ 1, as kernel's lnNormal.
func (g *gen) ln(x reg.VecVirtual) reg.VecVirtual {
	k, f := g.vec(), g.vec()
	VPSUBQ(table["sqrtHalf"], x, k)
	VPSRLQ(Imm(52), k, k)
	VPSLLQ(Imm(52), k, f)
	VPSUBQ(f, x, f)
	return g.lnOf(k, f, "int2f")
}

// lnBelow is ln of x ≥ 2^-1000, with 1024 added to the exponent until it is a float64.
func (g *gen) lnBelow(x reg.VecVirtual) reg.VecVirtual {
	k, f := g.vec(), g.vec()
	VPSUBQ(table["sqrtHalfLow"], x, k)
	VPSRLQ(Imm(52), k, k)
	VPSLLQ(Imm(52), k, f)
	VPSUBQ(f, x, f)
	VPADDQ(table["exponent1024"], f, f)
	return g.lnOf(k, f, "int2fBiased")
}

// lnOf returns k·ln 2 + ln f, f in [√½, √2) and k an integer: bias is 2^52 and what was added to k.
func (g *gen) lnOf(k, f reg.VecVirtual, bias string) reg.VecVirtual {
	s, z, h, r := g.vec(), g.vec(), g.vec(), g.vec()
	VSUBPD(table["unit"], f, f)
	if g.wide {
		VPORQ(table["int2f"], k, k)
	} else {
		VPOR(table["int2f"], k, k)
	}
	VSUBPD(table[bias], k, k)
	VADDPD(table["two"], f, s)
	VDIVPD(s, f, s)
	g.pause()
	VMULPD(s, s, z)
	g.lnSeries(z, r)
	VMULPD(z, r, r)
	g.pause()
	VMULPD(table["half"], f, h)
	VMULPD(f, h, h)
	VADDPD(h, r, r)
	VMULPD(table["ln2Lo"], k, z)
	VFMADD231PD(r, s, z)
	VSUBPD(z, h, h)
	VSUBPD(h, f, f)
	VFMADD231PD(table["ln2Hi"], k, f)
	return f
}

// lnSeries sets r to Σ_n z^n·2/(2n+3), in a tree: a chain would be what a block waits for.
func (g *gen) lnSeries(z, r reg.VecVirtual) {
	z2, z4 := g.vec(), g.vec()
	VMULPD(z, z, z2)
	VMULPD(z2, z2, z4)
	var pair [4]reg.VecVirtual
	for i := range pair {
		pair[i] = g.vec()
		move(table[lnNames[2*i+1]], pair[i])
		VFMADD213PD(table[lnNames[2*i]], z, pair[i])
	}
	VFMADD213PD(pair[0], z2, pair[1])
	VFMADD213PD(pair[2], z2, pair[3])
	VFMADD231PD(table[lnNames[8]], z4, pair[3])
	move(pair[1], r)
	VFMADD231PD(pair[3], z4, r)
}

// write transposes eight fields of 8 or 4 rows and stores the rows.
func (g *finisher) write(at int, f []reg.VecVirtual) {
	row := func(i int) Mem { return Mem{Base: g.rows, Disp: (at + i) * rowBytes} }
	if !g.wide {
		for half := range 2 {
			g.write4(f[4*half:4*half+4], func(i int) Mem { return row(i).Offset(32 * half) })
		}
		return
	}
	var pair [2][4]reg.VecVirtual // of even and of odd rows
	for i := range 4 {
		pair[0][i], pair[1][i] = g.vec(), g.vec()
		VUNPCKLPD(f[2*i+1], f[2*i], pair[0][i])
		VUNPCKHPD(f[2*i+1], f[2*i], pair[1][i])
	}
	for odd, p := range pair {
		for next, imm := range []Constant{Imm(0x88), Imm(0xdd)} {
			u, v := g.vec(), g.vec()
			VSHUFF64X2(imm, p[1], p[0], u)
			VSHUFF64X2(imm, p[3], p[2], v)
			for two, pick := range []Constant{Imm(0x88), Imm(0xdd)} {
				o := g.vec()
				VSHUFF64X2(pick, v, u, o)
				VMOVUPD(o, row(4*two+2*next+odd))
			}
		}
	}
}

func (g *finisher) write4(f []reg.VecVirtual, row func(int) Mem) {
	for odd := range 2 {
		a, b := g.vec(), g.vec()
		if odd == 0 {
			VUNPCKLPD(f[1], f[0], a)
			VUNPCKLPD(f[3], f[2], b)
		} else {
			VUNPCKHPD(f[1], f[0], a)
			VUNPCKHPD(f[3], f[2], b)
		}
		for two, imm := range []Constant{Imm(0x20), Imm(0x31)} {
			o := g.vec()
			VPERM2F128(imm, b, a, o)
			VMOVUPD(o, row(2*two+odd))
		}
	}
}
