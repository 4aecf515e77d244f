package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// taylor are those of kernel's exp, from degree 2 on.
var taylor = []float64{
	1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800,
	1. / 479001600, 1. / 6227020800,
}

func expRowConstants() {
	for i, c := range taylor {
		f64(fmt.Sprintf("taylor%d", i+2), c)
	}
	f64("log2e64", math.Log2E)
	f64("magic64", 0x1.8p52)
	f64("expLeast64", -700)
	repeat("bias64", 8, 8, 1023)
}

// expRow512 is exp of eight differences at a time, in kernel's order of operations.
func expRow512() {
	TEXT("expRow512", NOSPLIT, "func(dst *float64, z *float32, n int, top float64) (low uint32)")
	Doc("expRow512 writes exp(z - top) to dst, n a multiple of 8, z ≤ top; low is not 0 where some difference is " +
		"below -700.")
	Pragma("noescape")
	dst, z, n := Load(Param("dst"), GP64()), Load(Param("z"), GP64()), Load(Param("n"), GP64())
	top, anyLow, m, mask := ZMM(), GP32(), GP32(), K()
	VBROADCASTSD(NewParamAddr("top", 24), top)
	XORL(anyLow, anyLow)
	Label("expRow512_loop")
	x, t, k, r, r2, r4 := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VCVTPS2PD(Mem{Base: z}, x)
	VSUBPD(top, x, x)
	VCMPPD(Imm(1), table["expLeast64"], x, mask) // below
	KMOVW(mask, m)
	ORL(m, anyLow)
	VMOVUPD(table["magic64"], t)
	VFMADD231PD(table["log2e64"], x, t)
	VSUBPD(table["magic64"], t, k)
	VMOVAPD(x, r)
	VFNMADD231PD(table["ln2Hi"], k, r)
	VFNMADD231PD(table["ln2Lo"], k, r)
	VMULPD(r, r, r2)
	VMULPD(r2, r2, r4)
	var pair [6]reg.VecVirtual
	for i := range pair {
		pair[i] = ZMM()
		VMOVUPD(table[fmt.Sprintf("taylor%d", 2*i+3)], pair[i])
		VFMADD213PD(table[fmt.Sprintf("taylor%d", 2*i+2)], r, pair[i])
	}
	for i := 0; i < len(pair); i += 2 {
		VFMADD231PD(pair[i+1], r2, pair[i])
	}
	VFMADD231PD(pair[4], r4, pair[2])
	VFMADD231PD(pair[2], r4, pair[0])
	VFMADD213PD(r, r2, pair[0])
	VADDPD(table["unit"], pair[0], pair[0])
	VPADDQ(table["bias64"], t, t)
	VPSLLQ(Imm(52), t, t)
	VMULPD(t, pair[0], x)
	VMOVUPD(x, Mem{Base: dst})
	ADDQ(Imm(32), z)
	ADDQ(Imm(64), dst)
	SUBQ(Imm(8), n)
	JG(LabelRef("expRow512_loop"))
	Store(anyLow, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
