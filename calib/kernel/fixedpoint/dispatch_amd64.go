//go:build amd64 && !purego

package fixedpoint

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL &&
		cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT
	hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2
)

func addScaled(dense []int64, to list, r *scaledRow) (listed int, zero, bad bool) {
	if hasAVX2 {
		return addScaledAVX2(dense, to, r)
	}
	return addScaledGo(dense, to, r)
}

func addScaledRows(dense []int64, to *Large, r *ScaledRows, at int) (done int) {
	if !hasAVX512 {
		return addScaledEach(dense, to, r, at)
	}
	return addScaledRows512(&dense[0], &to.Class[0], &to.V[0], &r.V[0], r.K, &r.Rows[at], len(r.Rows)-at,
		&r.Scale[at], &r.edge[at], &r.limit[at], &to.End[0], &to.Zero[0])
}

// addScaledAVX2 takes blocks of classes whose masks fit on the stack, and leaves the last, unfinished vector to plain
// Go.
func addScaledAVX2(dense []int64, to list, r *scaledRow) (listed int, zero, bad bool) {
	const block = 512
	var masks [block / 8]uint8
	whole := len(r.v) &^ 7
	for at := 0; at < whole; at += block {
		n := min(block, whole-at)
		badHere, zeroHere := addScaled2(&dense[at], &masks[0], &r.v[at], n, r.scale, r.edge, r.limit)
		bad, zero = bad || badHere != 0, zero || zeroHere != 0
		for i, mask := range masks[:n/8] {
			for ; mask != 0; mask &= mask - 1 {
				k := at + 8*i + bits.TrailingZeros8(mask)
				to.class[listed], to.v[listed] = uint32(k), r.v[k]
				listed++
			}
		}
	}
	rest := *r
	rest.v, rest.base = r.v[whole:], whole
	more, zeroRest, badRest := addScaledGo(dense[whole:], to.from(listed), &rest)
	return listed + more, zero || zeroRest, bad || badRest
}

func addSoft(sums SoftSums, g, e []float64, r SoftRow) {
	switch {
	case hasAVX512:
		addSoft512(&sums.U[0], &sums.UC[0], &sums.UC2[0], &g[0], &e[0], len(g), r.Rho, r.C, r.W)
	case hasAVX2:
		addSoft2(&sums.U[0], &sums.UC[0], &sums.UC2[0], &g[0], &e[0], len(g), r.Rho, r.C, r.W)
	default:
		addSoftGo(sums, g, e, r)
	}
}

// softLanesFrom is the number of rows from which a row per lane is the faster order, although 512 sums must be added.
const softLanesFrom = 128

func sumLanes(raw *[4][16]int64, lanes []int64) {
	for f := range raw {
		for j := range raw[f] {
			v := lanes[8*(16*f+j):][:8]
			raw[f][j] = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]
		}
	}
}

// addSoftRows returns false where there is no vector path for so many bins.
func addSoftRows(to *OutcomeSums, g []float64, r SoftRows) bool {
	if !hasAVX512 || len(g) != 16 {
		return false
	}
	var raw [4][16]int64
	if len(r.Rho) < softLanesFrom {
		addSoftRows512(&raw[0][0], &g[0], &r.Rho[0], &r.C[0], &r.Hit[0], len(r.Rho))
	} else {
		var memory [4*16*8 + 7]int64
		// From a whole line on: vectors in two lines each would take twice as long.
		lanes := memory[-(uintptr(unsafe.Pointer(&memory))/8)%8:][:4*16*8]
		addSoftLanes512(&lanes[0], &g[0], &r.Rho[0], &r.C[0], &r.Hit[0], len(r.Rho))
		sumLanes(&raw, lanes)
	}
	to.takeOffMagic(&raw, r.Hit)
	return true
}

func (r *CellRows) find(near []uint8, c, w []float64) bool {
	if !hasAVX512 {
		return false
	}
	cells512(&r.Key[0], &r.WC[0], &r.WC2[0], &near[0], &c[0], &w[0], len(c))
	return true
}

// ratios returns how many of the first values it has written.
func ratios(dst, c []float64, rate, first float64) int {
	n := len(c) &^ 7
	if !hasAVX512 || n == 0 {
		return 0
	}
	ratios512(&dst[0], &c[0], n, rate, first, &exp2Table[0])
	return n
}

func findKeys(l *Large, scales []float64, m int, slack float64) {
	if !hasAVX512 {
		findKeysGo(l, scales, m, slack)
		return
	}
	findKeys512(&l.Key[0], &l.Sum[0], &l.Class[0], &l.V[0], &l.End[0], len(l.End), &scales[0],
		float64(m), float64(m)-2*slack, slack, 1-slack, uint64(m+1))
}

func addEntries(entries [][4]int64, places, keys []uint32, sums []int64, one int64) int {
	if !hasAVX512 && !hasAVX2 {
		return addEntriesGo(entries, places, keys, sums, one)
	}
	return addEntries2(&entries[0][0], &places[0], &keys[0], &sums[0], len(keys), one)
}

func addCells(entries [][4]int64, places []uint16, c *CellRows, rows []int32, outcome uint16) int {
	if !hasAVX512 && !hasAVX2 {
		return addCellsGo(entries, places, c, rows, outcome)
	}
	return addCells2(&entries[0][0], &places[0], &c.Key[0], &c.Hit[0], &c.W[0], &c.WC[0], &c.WC2[0],
		&rows[0], len(rows), uint64(outcome))
}

func rowLimits(edges, most []uint32, scales []float64, edge float64) {
	if !hasAVX512 {
		rowLimitsGo(edges, most, scales, edge)
		return
	}
	limits512(&edges[0], &most[0], &scales[0], len(scales), edge, 1+Slack)
}

func (l *LabelRows) keys(dst []uint32, m int, slack float64) {
	if !hasAVX512 {
		l.keysGo(dst, m, slack)
		return
	}
	labelKeys512(&dst[0], &l.Y[0], &l.P[0], &l.Rows[0], len(l.Rows),
		float64(m), float64(m)-2*slack, slack, 1-slack, uint64(m+1))
}

func lagCells(cells []uint16, lags []int64, unit int64, mantissas *[4]int64, base int) bool {
	if !hasAVX512 {
		return false
	}
	lagCells512(&cells[0], &lags[0], len(lags), unit, &mantissas[0], base)
	return true
}
