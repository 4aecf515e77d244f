package main

import (
	"fmt"
	"strings"
)

// v is a vector register.
type v int

// asm is the text of the file. Scalar instructions are lines of Go's assembler, those of vectors are words with their
// mnemonic beside them.
type asm struct {
	strings.Builder
	labels int
}

func (a *asm) line(format string, args ...any) { fmt.Fprintf(a, "\t"+format+"\n", args...) }

// label is a name that no other place has.
func (a *asm) label() string {
	a.labels++
	return fmt.Sprintf("at%d", a.labels)
}

func (a *asm) here(label string) { fmt.Fprintf(a, "%s:\n", label) }

func (a *asm) word(w uint32, format string, args ...any) {
	fmt.Fprintf(a, "\tWORD $0x%08x // %s\n", w, fmt.Sprintf(format, args...))
}

// three are the instructions of two sources and a destination. fmla and bit read the destination too.
var three = map[string]uint32{
	"fadd.4s": 0x4e20d400, "fsub.4s": 0x4ea0d400, "fmul.4s": 0x6e20dc00, "fdiv.4s": 0x6e20fc00,
	"fmax.4s": 0x4e20f400, "fmin.4s": 0x4ea0f400, "fmla.4s": 0x4e20cc00, "fcmeq.4s": 0x4e20e400,
	"add.4s": 0x4ea08400, "sub.4s": 0x6ea08400, "umin.4s": 0x6ea06c00,
	"and.16b": 0x4e201c00, "bic.16b": 0x4e601c00, "orr.16b": 0x4ea01c00, "orn.16b": 0x4ee01c00,
	"eor.16b": 0x6e201c00, "bit.16b": 0x6ea01c00,
	"trn1.4s": 0x4e802800, "trn2.4s": 0x4e806800, "trn1.2d": 0x4ec02800, "trn2.2d": 0x4ec06800,
	"fadd.2d": 0x4e60d400, "fcmgt.4s": 0x6ea0e400, "fmls.4s": 0x4ea0cc00,
	"cmhi.4s": 0x6ea03400, "cmeq.4s": 0x6ea08c00, "umax.4s": 0x6ea06400,
}

// op is d = n op m.
func (a *asm) op(name string, d, n, m v) {
	code, ok := three[name]
	if !ok {
		panic("no instruction " + name)
	}
	what, form, _ := strings.Cut(name, ".")
	a.word(code|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", what, d, form, n, form, m, form)
}

// two are the instructions of one source.
var two = map[string]uint32{
	"fcvtl v%d.2d, v%d.2s": 0x0e617800, "fcvtl2 v%d.2d, v%d.4s": 0x4e617800, "faddp d%d, v%d.2d": 0x7e70d800,
	"fmaxv s%d, v%d.4s": 0x6e30f800, "umaxv s%d, v%d.4s": 0x6eb0a800, "uminv s%d, v%d.4s": 0x6eb1a800,
	"addv s%d, v%d.4s":        0x4eb1b800,
	"shl v%d.4s, v%d.4s, #23": 0x4f375400, "sshr v%d.4s, v%d.4s, #23": 0x4f290400,
	"scvtf v%d.4s, v%d.4s": 0x4e21d800,
	"dup v%d.4s, v%d.s[0]": 0x4e040400,
}

func (a *asm) of(name string, d, n v) {
	code, ok := two[name]
	if !ok {
		panic("no instruction " + name)
	}
	a.word(code|uint32(n)<<5|uint32(d), name, d, n)
}

// rotate moves the lanes down by some.
func (a *asm) rotate(d, n v, lanes int) {
	w := 0x6e004000 | uint32(4*lanes)<<11 | uint32(n)<<16 | uint32(n)<<5 | uint32(d)
	a.word(w, "ext v%d.16b, v%d.16b, v%d.16b, #%d", d, n, n, 4*lanes)
}

func (a *asm) mov(d, n v) { a.op("orr.16b", d, n, n) }

func (a *asm) zero(d v) { a.op("eor.16b", d, d, d) }

func (a *asm) one(d v) { a.word(0x4f03f600|uint32(d), "fmov v%d.4s, #1.0", d) }

// lane is an element of a register.
type lane struct {
	of v
	i  int
}

// mulLane is d = n·m, fmlaLane d += n·m.
func (a *asm) mulLane(d, n v, m lane) {
	a.word(0x4f809000|m.bits(d, n), "fmul v%d.4s, v%d.4s, v%d.s[%d]", d, n, m.of, m.i)
}

func (a *asm) fmlaLane(d, n v, m lane) {
	a.word(0x4f801000|m.bits(d, n), "fmla v%d.4s, v%d.4s, v%d.s[%d]", d, n, m.of, m.i)
}

func (m lane) bits(d, n v) uint32 {
	return uint32(m.i&1)<<21 | uint32(m.of)<<16 | uint32(m.i>>1)<<11 | uint32(n)<<5 | uint32(d)
}

// dup sets all lanes to a word in memory.
func (a *asm) dup(d v, base int) {
	a.word(0x4d40c800|uint32(base)<<5|uint32(d), "ld1r {v%d.4s}, [x%d]", d, base)
}

// Loads and stores of a register and of four. next moves the base on behind what was read or written.
func (a *asm) load(d v, base, offset int) {
	a.word(0x3dc00000|uint32(offset/16)<<10|uint32(base)<<5|uint32(d), "ldr q%d, [x%d, #%d]", d, base, offset)
}

func (a *asm) store(d v, base, offset int) {
	a.word(0x3d800000|uint32(offset/16)<<10|uint32(base)<<5|uint32(d), "str q%d, [x%d, #%d]", d, base, offset)
}

func (a *asm) loadNext(d v, base int) {
	a.word(0x3cc00400|16<<12|uint32(base)<<5|uint32(d), "ldr q%d, [x%d], #16", d, base)
}

func (a *asm) storeNext(d v, base int) {
	a.word(0x3c800400|16<<12|uint32(base)<<5|uint32(d), "str q%d, [x%d], #16", d, base)
}

func (a *asm) loadFour(d v, base int) {
	a.word(0x4c402800|uint32(base)<<5|uint32(d), "ld1 {v%d.4s-v%d.4s}, [x%d]", d, d+3, base)
}

func (a *asm) loadFourNext(d v, base int) {
	a.word(0x4cdf2800|uint32(base)<<5|uint32(d), "ld1 {v%d.4s-v%d.4s}, [x%d], #64", d, d+3, base)
}

func (a *asm) storeFourNext(d v, base int) {
	a.word(0x4c9f2800|uint32(base)<<5|uint32(d), "st1 {v%d.4s-v%d.4s}, [x%d], #64", d, d+3, base)
}

// storeWord writes the first float32, storeDouble the first float64.
func (a *asm) storeWord(d v, base, offset int) {
	a.word(0xbd000000|uint32(offset/4)<<10|uint32(base)<<5|uint32(d), "str s%d, [x%d, #%d]", d, base, offset)
}

func (a *asm) storeDouble(d v, base, offset int) {
	a.word(0xfd000000|uint32(offset/8)<<10|uint32(base)<<5|uint32(d), "str d%d, [x%d, #%d]", d, base, offset)
}

// general moves the first word to a general register.
func (a *asm) general(r int, n v) { a.word(0x1e260000|uint32(n)<<5|uint32(r), "fmov w%d, s%d", r, n) }

// transpose makes columns of rows: register from+i gets the i-th elements of the four. It needs four others.
func (a *asm) transpose(from, temp v) {
	a.op("trn1.4s", temp, from, from+1)
	a.op("trn2.4s", temp+1, from, from+1)
	a.op("trn1.4s", temp+2, from+2, from+3)
	a.op("trn2.4s", temp+3, from+2, from+3)
	a.op("trn1.2d", from, temp, temp+2)
	a.op("trn1.2d", from+1, temp+1, temp+3)
	a.op("trn2.2d", from+2, temp, temp+2)
	a.op("trn2.2d", from+3, temp+1, temp+3)
}
