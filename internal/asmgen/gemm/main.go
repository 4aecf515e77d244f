package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	tile("tile512", 8, 2, 64)
	tile("tile2", 4, 2, 32)
	Generate()
}

// tile generates C[i][j] += Σ_p A[i·ai + p·ap] B[p·bp + j] for rows of i and vectors of j.
func tile(name string, rows, vectors, width int) {
	TEXT(name, NOSPLIT, "func(c, a, b *float64, n, cs, ai, ap, bp int)")
	Pragma("noescape")
	Doc(name + " adds n products to each element of a tile of C; cs, ai, ap and bp are strides in numbers.")
	c, a, b := Load(Param("c"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n := Load(Param("n"), GP64())
	cs, ai, ap, bp := stride("cs"), stride("ai"), stride("ap"), stride("bp")
	ai3 := GP64()
	LEAQ(Mem{Base: ai, Index: ai, Scale: 2}, ai3)
	bases := []Register{a}
	for at := 4; at < rows; at += 4 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: ai, Scale: 4}, next)
		bases = append(bases, next)
	}
	vector := func() VecVirtual {
		if width == 64 {
			return ZMM()
		}
		return YMM()
	}
	acc := make([][]VecVirtual, rows)
	at := GP64()
	MOVQ(c, at)
	for i := range acc {
		for v := range vectors {
			x := vector()
			VMOVUPD(Mem{Base: at, Disp: v * width}, x)
			acc[i] = append(acc[i], x)
		}
		ADDQ(cs, at)
	}
	TESTQ(n, n)
	JZ(LabelRef(name + "Done"))
	Label(name + "Loop")
	right := make([]VecVirtual, vectors)
	for v := range right {
		right[v] = vector()
		VMOVUPD(Mem{Base: b, Disp: v * width}, right[v])
	}
	for i := range acc {
		left := vector()
		m := Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1:
			m.Index, m.Scale = ai, 1
		case 2:
			m.Index, m.Scale = ai, 2
		case 3:
			m.Index, m.Scale = ai3, 1
		}
		VBROADCASTSD(m, left)
		for v := range right {
			VFMADD231PD(right[v], left, acc[i][v])
		}
	}
	for _, base := range bases {
		ADDQ(ap, base)
	}
	ADDQ(bp, b)
	DECQ(n)
	JNZ(LabelRef(name + "Loop"))
	Label(name + "Done")
	for i := range acc {
		for v, x := range acc[i] {
			VMOVUPD(x, Mem{Base: c, Disp: v * width})
		}
		if i+1 < rows {
			ADDQ(cs, c)
		}
	}
	VZEROUPPER()
	RET()
}

// stride loads a stride in bytes.
func stride(name string) Register {
	r := Load(Param(name), GP64())
	SHLQ(U8(3), r)
	return r
}
