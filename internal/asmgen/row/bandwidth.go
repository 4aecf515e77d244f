package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pageAhead is how far ahead a line is asked for so that its page is translated by the time that its lines are.
const pageAhead = 12288

// readAll sums: what the row kernels' memory traffic is measured against. With ahead it asks for lines before it needs
// them, which the processor's own prefetching does in part.
func readAll(name string, ahead bool) {
	TEXT(name, NOSPLIT, "func(z *float32, n int) float32")
	Doc(name + " sums n scores, n a multiple of 128. Benchmarks only.")
	Pragma("noescape")
	z, n := Load(Param("z"), GP64()), Load(Param("n"), GP64())
	sum := make([]reg.VecVirtual, 8)
	for i := range sum {
		sum[i] = ZMM()
		VPXORD(sum[i], sum[i], sum[i])
	}
	SHRQ(Imm(7), n)
	Label(name + "_loop")
	if ahead {
		PREFETCHT0(Mem{Base: z, Disp: pageAhead})
	}
	for i, s := range sum {
		if ahead {
			PREFETCHT0(Mem{Base: z, Disp: 64*i + prefetchAhead})
		}
		VADDPS(Mem{Base: z, Disp: 64 * i}, s, s)
	}
	ADDQ(U32(512), z)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	for _, s := range sum[1:] {
		VADDPS(s, sum[0], sum[0])
	}
	Store(sum[0].AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}
