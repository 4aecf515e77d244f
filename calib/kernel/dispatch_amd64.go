//go:build amd64 && !purego

package kernel

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// path is the instruction set in use.
type path int

const (
	pathGo path = iota
	pathAVX2
	pathAVX512
)

// inUse is set once; tests force the others.
var inUse = best()

func best() path {
	c := &cpu.X86
	switch {
	case c.HasAVX512F && c.HasAVX512BW && c.HasAVX512DQ && c.HasAVX512VL && c.HasBMI1 && c.HasBMI2 && c.HasPOPCNT &&
		c.HasFMA:
		return pathAVX512
	case c.HasAVX2 && c.HasFMA && c.HasBMI1 && c.HasBMI2 && c.HasPOPCNT:
		return pathAVX2
	}
	return pathGo
}

// The vector paths rely on these.
var (
	_ [0]struct{} = [unsafe.Offsetof(sums{}.second) - 128]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(sums{}.q) - 576]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(sums{}.inv) - 704]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(params{}.beta) - 16]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(Row{}.Scale) - 56]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(Row{}) - 72]struct{}{}
)

// rowsAhead is how many rows there are between the one at work and the one whose maximum is found beside it.
func rowsAhead(k int) int {
	if k >= 8192 {
		return 1
	}
	return 2
}

// start finds the maxima of the first long rows of z.
func (a *sums) start(z []float32, k int) {
	for i := range min(rowsAhead(k), len(z)/k) {
		switch inUse {
		case pathAVX512:
			a.max[lanes+i] = longMax512(&z[i*k], k)
		case pathAVX2:
			a.max[lanes+i] = longMax2(&z[i*k], k)
		}
	}
}

// blocks makes the first n rows, 16 or a multiple of it where there are as many; a bit of bad is a row that the
// float64 path must do, of the last 16 or fewer of the n.
func (a *sums) blocks(rows []Row, e, z []float32, k int, p *params) (n int, bad uint32) {
	whole := len(rows) / lanes
	if whole == 0 || k < 4 || k > flushEvery || inUse == pathGo {
		return a.oneBlock(rows, e, z, k, p)
	}
	var left int
	r, q := (*byte)(unsafe.Pointer(&rows[0])), (*byte)(unsafe.Pointer(p))
	switch {
	case inUse == pathAVX512 && e != nil:
		left, bad = blocksE512(r, &e[0], &z[0], whole, k, q)
	case inUse == pathAVX512:
		left, bad = blocks512(r, nil, &z[0], whole, k, q)
	case e != nil:
		left, bad = blocksE2(r, &e[0], &z[0], whole, k, q)
	default:
		left, bad = blocks2(r, nil, &z[0], whole, k, q)
	}
	return (whole - left) * lanes, bad
}

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do. z goes on to the last row.
func (a *sums) block(rows []Row, e, z []float32, k int, p *params) (bad uint32) {
	switch {
	case inUse == pathGo:
		return a.blockGo(rows, e, z, k, p)
	case k >= columnK:
		a.long(len(rows), e, z, k, p)
	case len(rows) == lanes && k >= 4:
		a.short(e, z, k, p)
	default:
		a.padded(len(rows), e, z, k, p)
	}
	if len(rows) < lanes {
		return a.lastBlock(rows, p)
	}
	return a.finishRows(&rows[0], p)
}

func (a *sums) finishRows(rows *Row, p *params) uint32 {
	r, s, q := (*byte)(unsafe.Pointer(rows)), (*byte)(unsafe.Pointer(a)), (*byte)(unsafe.Pointer(p))
	if inUse == pathAVX512 {
		return finish512(r, s, q)
	}
	return finish2(r, s, q)
}

func (a *sums) lastBlock(rows []Row, p *params) uint32 {
	var all [lanes]Row
	bad := a.finishRows(&all[0], p)
	return bad & (1<<copy(rows, all[:]) - 1)
}

func (a *sums) long(n int, e, z []float32, k int, p *params) {
	a.max[0], a.max[1] = a.max[lanes], a.max[lanes+1]
	left := len(z) / k
	s, q := (*byte)(unsafe.Pointer(a)), (*byte)(unsafe.Pointer(p))
	switch {
	case inUse == pathAVX512 && e != nil:
		longRowsE512(s, &e[0], &z[0], n, k, left, rowsAhead(k), q)
	case inUse == pathAVX512:
		longRows512(s, nil, &z[0], n, k, left, rowsAhead(k), q)
	case e != nil:
		longRowsE2(s, &e[0], &z[0], n, k, left, rowsAhead(k), q)
	default:
		longRows2(s, nil, &z[0], n, k, left, rowsAhead(k), q)
	}
}

func (a *sums) short(e, z []float32, k int, p *params) {
	s, q := (*byte)(unsafe.Pointer(a)), (*byte)(unsafe.Pointer(p))
	switch {
	case inUse == pathAVX512 && e != nil:
		shortRowsE512(s, &e[0], &z[0], k, q)
	case inUse == pathAVX512:
		shortRows512(s, nil, &z[0], k, q)
	case e != nil:
		shortRowsE2(s, &e[0], &z[0], k, q)
	default:
		shortRows2(s, nil, &z[0], k, q)
	}
}

// padded is short for fewer than 16 rows, and for rows of fewer than 4 scores, which get more of them far below.
func (a *sums) padded(n int, e, z []float32, k int, p *params) {
	var zs, es [lanes * columnK]float32
	w := max(k, 4)
	for i := range n {
		copy(zs[i*w:], z[i*k:(i+1)*k])
		for j := k; j < w; j++ {
			zs[i*w+j] = -math.MaxFloat32
		}
	}
	var out []float32
	if e != nil {
		out = es[:]
	}
	a.short(out, zs[:], w, p)
	for i := 0; e != nil && i < n; i++ {
		copy(e[i*k:(i+1)*k], es[i*w:])
	}
}

// halfVector converts what vector instructions can and returns how many. AVX2 does not imply F16C.
func halfVector(dst []float32, src []uint16) int {
	n := len(src) &^ (lanes - 1)
	if n == 0 || inUse != pathAVX512 {
		return 0
	}
	half512(&dst[0], &src[0], n)
	return n
}

// fill returns false where there is no vector path.
func (o *Outcomes) fill(in *LabelledRows) bool {
	if inUse != pathAVX512 {
		return false
	}
	rows := (*byte)(unsafe.Pointer(&in.Rows[0]))
	outcomes512(rows, &in.V[0], &in.Z[0], &in.Y[0], &in.W[0], in.K, len(in.Rows), in.LnK,
		&o.Conf[0], &o.Margin[0], &o.NegEnt[0], &o.P[0], &o.NLL[0], &o.Brier[0], &o.Hit[0])
	return true
}

// expRow writes exp(z - top), z ≤ top, for as many z as vector instructions can do, and returns how many.
func expRow(dst []float64, z []float32, top float64) int {
	n := len(z) &^ 7
	if n == 0 || inUse != pathAVX512 || expRow512(&dst[0], &z[0], n, top) != 0 {
		return 0
	}
	return n
}
