package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	lanes  = 8
	degree = 13
)

func constant(name string, v float64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range lanes {
		DATA(8*i, U64(math.Float64bits(v))) // F64(1) would be assembled as the integer
	}
	return m
}

var floor, log2e, magic, ln2hi, ln2lo Mem
var factors []Mem

func main() {
	ConstraintExpr("amd64,!purego")
	floor = constant("floor", -700)
	log2e = constant("log2e", math.Log2E)
	magic = constant("magic", 0x1.8p52)
	ln2hi = constant("ln2hi", -0x1.62e42fefa38p-1)
	ln2lo = constant("ln2lo", -0x1.ef35793c7673p-45)
	f := 1.0
	names := "abcdefghijklmnopqrstuvwxyz"
	for i := range degree + 1 {
		if i > 1 {
			f *= float64(i)
		}
		factors = append(factors, constant("factor_"+names[i:i+1], 1/f))
	}
	exp("exp512", 64)
	exp("exp2", 32)
	Generate()
}

// exp generates n elements of exp(x - top), n a multiple of the vector's lanes and not 0.
func exp(name string, width int) {
	TEXT(name, NOSPLIT, "func(dst, x *float64, n int, top float64)")
	Pragma("noescape")
	Doc(name + " writes exp(x - top) of n numbers, a multiple of the vector's and not 0.")
	vector := func() VecVirtual {
		if width == 64 {
			return ZMM()
		}
		return YMM()
	}
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	top, least, shift := vector(), vector(), vector()
	at, err := Param("top").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, top)
	VMOVUPD(floor, least)
	VMOVUPD(magic, shift)
	Label(name + "Loop")
	d, k, r, p := vector(), vector(), vector(), vector()
	VMOVUPD(Mem{Base: x}, d)
	VSUBPD(top, d, d)
	VMAXPD(least, d, r) // the smaller ones become 0 at the end
	VMOVAPD(shift, k)
	VFMADD231PD(log2e, r, k)
	kf := vector()
	VSUBPD(shift, k, kf)
	VFMADD231PD(ln2hi, kf, r)
	VFMADD231PD(ln2lo, kf, r)
	VMOVUPD(factors[degree], p)
	for i := degree - 1; i >= 0; i-- {
		VFMADD213PD(factors[i], r, p)
	}
	VPSLLQ(U8(52), k, k)
	VPADDQ(k, p, p)
	if width == 64 {
		keep := K()
		VCMPPD(U8(0x0d), least, d, keep) // d ≥ least
		VMOVAPD_Z(p, keep, p)
	} else {
		keep := vector()
		VCMPPD(U8(0x0d), least, d, keep)
		VANDPD(keep, p, p)
	}
	VMOVUPD(p, Mem{Base: dst})
	ADDQ(U32(width), x)
	ADDQ(U32(width), dst)
	SUBQ(U32(width/8), n)
	JNZ(LabelRef(name + "Loop"))
	VZEROUPPER()
	RET()
}
