//go:build amd64 && !purego

#include "textflag.h"

// func relu8(x *float32, n int)
//
// The maximum of 0 and x is x where that is NaN, and +0 where x is −0: 0 + 0 is +0.
TEXT ·relu8(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VXORPS Y0, Y0, Y0

loop:
	VMAXPS  (DI), Y0, Y1
	VADDPS  Y0, Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func reluGrad8(dst, y, grad *float32, n int)
//
// Predicate 4 is "not equal, or not ordered".
TEXT ·reluGrad8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ grad+16(FP), DX
	MOVQ n+24(FP), CX
	VXORPS Y0, Y0, Y0

loop:
	VCMPPS  $4, (SI), Y0, Y1
	VANDPS  (DX), Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	ADDQ    $32, DX
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func masked8(dst, w *float32, bits *uint8, n int)
TEXT ·masked8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ w+8(FP), SI
	MOVQ bits+16(FP), DX
	MOVQ n+24(FP), CX
	VPXOR Y0, Y0, Y0

loop:
	VPMOVZXBD (DX), Y1
	VPSUBD  Y1, Y0, Y1
	VPAND   (SI), Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	ADDQ    $8, DX
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add8(sums, row *float32, n int)
TEXT ·add8(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VMOVUPS (DI), Y0
	VADDPS  (SI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET
