//go:build amd64 && !purego

#include "textflag.h"

// func step8(w, grad, v *float32, n int, lr, mu, l2 float32)
//
// No fused multiply-add: the bits are those of stepGo.
TEXT ·step8(SB), NOSPLIT, $0-44
	MOVQ w+0(FP), DI
	MOVQ grad+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS lr+32(FP), Y0
	VBROADCASTSS mu+36(FP), Y1
	VBROADCASTSS l2+40(FP), Y2

loop:
	VMOVUPS (DI), Y3
	VMULPS  Y3, Y2, Y4
	VADDPS  (SI), Y4, Y4
	VMULPS  (DX), Y1, Y5
	VADDPS  Y4, Y5, Y5
	VMOVUPS Y5, (DX)
	VMULPS  Y5, Y0, Y6
	VSUBPS  Y6, Y3, Y3
	VMOVUPS Y3, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	ADDQ    $32, DX
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET
