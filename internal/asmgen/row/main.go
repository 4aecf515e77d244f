package main

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set: wide is AVX-512.
type isa struct {
	suffix string
	wide   bool
}

func (s isa) vec() reg.VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

// halves is how many registers hold 16 float32.
func (s isa) halves() int {
	if s.wide {
		return 1
	}
	return 2
}

func (s isa) bytes() int { return 64 / s.halves() }

// Offsets of the fields of kernel's sums, params and Row.
const (
	offMax, offSecond, offCount, offArg = 0, 128, 192, 256
	offS, offD, offQ, offInverse        = 320, 448, 576, 704
	offHi, offLo, offInv                = 0, 4, 8
	offBeta, offRest                    = 16, 24
	rowBytes, offOK                     = 72, 64
)

// table is constants of 64 bytes each, all lanes alike.
var table = map[string]Mem{}

func f32(name string, v float32) { repeat(name, 16, 4, uint64(math.Float32bits(v))) }
func f64(name string, v float64) { repeat(name, 8, 8, math.Float64bits(v)) }

func repeat(name string, lanes, size int, bits uint64) {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range lanes {
		if size == 4 {
			DATA(4*i, U32(bits))
		} else {
			DATA(8*i, U64(bits))
		}
	}
	table[name] = m
}

// words is a table of uint32.
func words(name string, v []uint32) {
	m := GLOBL(name, RODATA|NOPTR)
	for i, w := range v {
		DATA(4*i, U32(w))
	}
	table[name] = m
}

// columnMasks is where columnBits, a bit for each of 16 columns, has the masks of 0 to 16 of them.
const columnMasks = 64

// expNames are the coefficients of 2^r from the highest degree; lnNames those of ln from the lowest.
var (
	expNames = []string{"exp6", "exp5", "exp4", "exp3", "exp2", "exp1", "one"}
	lnNames  = []string{"ln3", "ln5", "ln7", "ln9", "ln11", "ln13", "ln15", "ln17", "ln19"}
)

func constants() {
	for i, c := range []float32{
		0x1.442950p-13, 0x1.5f2802p-10, 0x1.3b2a42p-7, 0x1.c6af3cp-5, 0x1.ebfbe0p-3, 0x1.62e430p-1, 1,
	} {
		f32(expNames[i], c)
	}
	for i, n := range lnNames {
		f64(n, 2/float64(3+2*i))
	}
	f32("magic", 0x1.8p23)
	f32("magicBias", 0x1.8p23+127)
	f32("zeroScale", 127)
	f32("sumP2Start", 0x1p-60)
	f32("maxExponent", 1<<17)
	f32("negInf", float32(math.Inf(-1)))
	repeat("abs", 16, 4, math.MaxInt32)
	repeat("int1", 16, 4, 1)
	repeat("int64_1", 8, 8, 1)
	f64("unit", 1)
	f64("two", 2)
	f64("half", 0.5)
	f64("ln2Hi", 0x1.62e42feep-1)
	f64("ln2Lo", 0x1.a39ef35793c76p-33)
	repeat("sqrtHalf", 8, 8, 0x3fe6a09e667f3bcd)
	f64("int2f", 0x1p52)
	repeat("int127", 16, 4, 127)
	repeat("lowByte", 16, 4, 0xff)
	repeat("nibbles", 16, 4, 0x0f0f0f0f)
	counts := []uint32{0x02010100, 0x03020201, 0x03020201, 0x04030302} // of the bits of 0 to 15
	words("nibbleCounts", slices.Concat(counts, counts, counts, counts))
	masks := make([]uint32, 2*columnMasks/4+1)
	for i := range 17 {
		masks[columnMasks/4+i] = 1<<i - 1
		if i < 16 {
			masks[i] = 1 << i
		}
	}
	words("columnBits", masks)
	m := GLOBL("tailMask", RODATA|NOPTR)
	for i := range 32 {
		v := uint32(0)
		if i >= 16 {
			v = math.MaxUint32
		}
		DATA(4*i, U32(v))
	}
	table["tailMask"] = m
}

func main() {
	ConstraintExpr("amd64,!purego")
	constants()
	probConstants()
	outcomeConstants()
	expRowConstants()
	for _, s := range []isa{{"512", true}, {"2", false}} {
		longMax(s)
		for _, store := range []bool{false, true} {
			longRows(s, store)
			shortRows(s, store)
			blocks(s, store)
		}
		finish(s)
		probShort(s)
		probLong(s)
		probFinish(s)
	}
	half()
	outcomes512()
	expRow512()
	readAll("readAll512", false)
	readAll("readAhead512", true)
	Generate()
}
