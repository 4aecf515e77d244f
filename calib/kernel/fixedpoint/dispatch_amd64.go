//go:build amd64 && !purego

package fixedpoint

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasBMI2 &&
		cpu.X86.HasPOPCNT
	hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2
)

func addScaled(dense []int64, index []uint32, large []float32, v []float32, base int, scale float64, edge, limit uint32) (listed int, zero, bad bool) {
	switch {
	case hasAVX512:
		row, end, zeros := int32(0), 0, uint8(0)
		done := addScaledRows512(&dense[0], &index[0], &large[0], &v[0], len(v), &row, 1, &scale, &edge, &limit, &end, &zeros)
		return end, zeros != 0, done == 0
	case hasAVX2:
		return addScaledAVX2(dense, index, large, v, base, scale, edge, limit)
	}
	return addScaledGo(dense, index, large, v, base, scale, edge, limit)
}

func addScaledRows(dense []int64, index []uint32, large []float32, end []int, zero []uint8, r *ScaledRows, at int) (done int) {
	if !hasAVX512 {
		return addScaledEach(dense, index, large, end, zero, r, at)
	}
	return addScaledRows512(&dense[0], &index[0], &large[0], &r.V[0], r.K, &r.Rows[at], len(r.Rows)-at, &r.Scale[at], &r.edge[at], &r.limit[at], &end[0], &zero[0])
}

// addScaledAVX2 takes blocks of classes whose masks fit on the stack, and leaves the last, unfinished vector to plain
// Go.
func addScaledAVX2(dense []int64, index []uint32, large []float32, v []float32, base int, scale float64, edge, limit uint32) (listed int, zero, bad bool) {
	const block = 512
	var masks [block / 8]uint8
	whole := len(v) &^ 7
	for at := 0; at < whole; at += block {
		n := min(block, whole-at)
		badHere, zeroHere := addScaled2(&dense[at], &masks[0], &v[at], n, scale, edge, limit)
		bad, zero = bad || badHere != 0, zero || zeroHere != 0
		for i, mask := range masks[:n/8] {
			for ; mask != 0; mask &= mask - 1 {
				k := at + 8*i + bits.TrailingZeros8(mask)
				index[listed], large[listed] = uint32(base+k), v[k]
				listed++
			}
		}
	}
	more, zeroRest, badRest := addScaledGo(dense[whole:], index[listed:], large[listed:], v[whole:], base+whole, scale, edge, limit)
	return listed + more, zero || zeroRest, bad || badRest
}

func addSoft(s, uc, uc2 []int64, g, e []float64, rho, c, w float64) {
	switch {
	case hasAVX512:
		addSoft512(&s[0], &uc[0], &uc2[0], &g[0], &e[0], len(g), rho, c, w)
	case hasAVX2:
		addSoft2(&s[0], &uc[0], &uc2[0], &g[0], &e[0], len(g), rho, c, w)
	default:
		addSoftGo(s, uc, uc2, g, e, rho, c, w)
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
func addSoftRows(wrong, right, uc, uc2 []int64, g, rho, c []float64, hit []uint8) bool {
	if !hasAVX512 || len(g) != 16 {
		return false
	}
	var raw [4][16]int64
	if len(rho) < softLanesFrom {
		addSoftRows512(&raw[0][0], &g[0], &rho[0], &c[0], &hit[0], len(rho))
	} else {
		var memory [4*16*8 + 7]int64
		// From a whole line on: vectors in two lines each would take twice as long.
		lanes := memory[-(uintptr(unsafe.Pointer(&memory))/8)%8:][:4*16*8]
		addSoftLanes512(&lanes[0], &g[0], &rho[0], &c[0], &hit[0], len(rho))
		sumLanes(&raw, lanes)
	}
	takeOffMagic(wrong[:16], right[:16], uc[:16], uc2[:16], &raw, hit)
	return true
}

func cells(keys []uint16, wc, wc2 []int64, near []uint8, c, w []float64) bool {
	if !hasAVX512 {
		return false
	}
	cells512(&keys[0], &wc[0], &wc2[0], &near[0], &c[0], &w[0], len(c))
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
	findKeys512(&l.Key[0], &l.Sum[0], &l.Class[0], &l.V[0], &l.End[0], len(l.End), &scales[0], float64(m), float64(m)-2*slack, slack, 1-slack, uint64(m+1))
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
	return addCells2(&entries[0][0], &places[0], &c.Key[0], &c.Hit[0], &c.W[0], &c.WC[0], &c.WC2[0], &rows[0], len(rows), uint64(outcome))
}

func rowLimits(edges, most []uint32, scales []float64, edge float64) {
	if !hasAVX512 {
		rowLimitsGo(edges, most, scales, edge)
		return
	}
	limits512(&edges[0], &most[0], &scales[0], len(scales), edge, 1+Slack)
}

func labelKeys(keys []uint32, y []int32, p []float64, rows []int32, m int, slack float64) {
	if !hasAVX512 {
		labelKeysGo(keys, y, p, rows, m, slack)
		return
	}
	labelKeys512(&keys[0], &y[0], &p[0], &rows[0], len(rows), float64(m), float64(m)-2*slack, slack, 1-slack, uint64(m+1))
}

func lagCells(cells []uint16, lags []int64, unit int64, mantissas *[4]int64, base int) bool {
	if !hasAVX512 {
		return false
	}
	lagCells512(&cells[0], &lags[0], len(lags), unit, &mantissas[0], base)
	return true
}
