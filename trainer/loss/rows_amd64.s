//go:build amd64 && !purego

#include "textflag.h"

// func highest8(z *float32, n int) int
//
// The largest value by vectors, then its first place. A NaN is equal to nothing: then there may be no place.
TEXT ·highest8(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Y0
	MOVQ $8, AX

most:
	CMPQ AX, CX
	JGE  across
	VMAXPS (SI)(AX*4), Y0, Y0
	ADDQ $8, AX
	JMP  most

across:
	VEXTRACTF128 $1, Y0, X1
	VMAXPS  X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS  X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS  X1, X0, X0
	VINSERTF128 $1, X0, Y0, Y0
	VPERMILPS $0, Y0, Y0
	XORQ AX, AX

place:
	VCMPPS $0, (SI)(AX*4), Y0, Y1
	VMOVMSKPS Y1, DX
	TESTL DX, DX
	JNZ  found
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  place
	VZEROUPPER
	MOVQ CX, ret+16(FP)
	RET

found:
	BSFL DX, DX
	ADDQ DX, AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET

// func minus8(d *float64, z *float32, n int, m float64) float64
TEXT ·minus8(SB), NOSPLIT, $0-40
	MOVQ d+0(FP), DI
	MOVQ z+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSD m+24(FP), Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2

subtract:
	VCVTPS2PD (SI), Y3
	VCVTPS2PD 16(SI), Y4
	VSUBPD  Y0, Y3, Y3
	VSUBPD  Y0, Y4, Y4
	VMOVUPD Y3, (DI)
	VMOVUPD Y4, 32(DI)
	VADDPD  Y3, Y1, Y1
	VADDPD  Y4, Y2, Y2
	ADDQ    $32, SI
	ADDQ    $64, DI
	SUBQ    $8, CX
	JNZ     subtract
	VADDPD  Y2, Y1, Y1
	VEXTRACTF128 $1, Y1, X2
	VADDPD  X2, X1, X1
	VPERMILPD $1, X1, X2
	VADDSD  X2, X1, X1
	VZEROUPPER
	MOVSD   X1, ret+32(FP)
	RET

// func total4(sums *[4]float64, p *float64, n int)
//
// The four sums are those of totalGo, in its order.
TEXT ·total4(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	VXORPD Y0, Y0, Y0

add:
	VADDPD (SI), Y0, Y0
	ADDQ   $32, SI
	SUBQ   $4, CX
	JNZ    add
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func scaled8(grad *float32, p *float64, n int, inv, w float64)
TEXT ·scaled8(SB), NOSPLIT, $0-40
	MOVQ grad+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSD inv+24(FP), Y0
	VBROADCASTSD w+32(FP), Y1

scale:
	VMULPD (SI), Y0, Y2
	VMULPD 32(SI), Y0, Y3
	VMULPD Y2, Y1, Y2
	VMULPD Y3, Y1, Y3
	VCVTPD2PSY Y2, X2
	VCVTPD2PSY Y3, X3
	VMOVUPS X2, (DI)
	VMOVUPS X3, 16(DI)
	ADDQ    $64, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     scale
	VZEROUPPER
	RET
