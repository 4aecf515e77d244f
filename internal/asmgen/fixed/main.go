package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

const magicBits = 0x4138000000000000 // of 1.5·2^20

func constant(name string, lanes int, bits uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range lanes {
		DATA(8*i, U64(bits))
	}
	return m
}

// classes are 0 to 15, of 32 bits each; sixteen is their step.
var magicMem, unitMem, classesMem, sixteenMem Mem

func main() {
	ConstraintExpr("amd64,!purego")
	magicMem = constant("magic", 8, magicBits)
	unitMem = constant("unit", 8, math.Float64bits(1))
	classesMem = GLOBL("classes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	sixteenMem = GLOBL("sixteen", RODATA|NOPTR)
	DATA(0, U32(16))
	addScaledRows512()
	addScaled2()
	addSoft512()
	addSoft2()
	addSoftRows512()
	addSoftLanes512()
	cells512()
	ratios512()
	findKeys512()
	addEntries2()
	addCells2()
	limits512()
	labelKeys512()
	lagCells512()
	Generate()
}
