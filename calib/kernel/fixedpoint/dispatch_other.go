//go:build !amd64 || purego

package fixedpoint

func addScaled(dense []int64, index []uint32, large []float32, v []float32, base int, scale float64, edge, limit uint32) (listed int, zero, bad bool) {
	return addScaledGo(dense, index, large, v, base, scale, edge, limit)
}

func addScaledRows(dense []int64, index []uint32, large []float32, end []int, zero []uint8, r *ScaledRows, at int) (done int) {
	return addScaledEach(dense, index, large, end, zero, r, at)
}

func addSoft(s, uc, uc2 []int64, g, e []float64, rho, c, w float64) {
	addSoftGo(s, uc, uc2, g, e, rho, c, w)
}

func addSoftRows(wrong, right, uc, uc2 []int64, g, rho, c []float64, hit []uint8) bool { return false }

func cells(keys []uint16, wc, wc2 []int64, near []uint8, c, w []float64) bool { return false }

func ratios(dst, c []float64, rate, first float64) int { return 0 }

func findKeys(l *Large, scales []float64, m int, slack float64) { findKeysGo(l, scales, m, slack) }

func addEntries(entries [][4]int64, places, keys []uint32, sums []int64, one int64) int {
	return addEntriesGo(entries, places, keys, sums, one)
}

func addCells(entries [][4]int64, places []uint16, c *CellRows, rows []int32, outcome uint16) int {
	return addCellsGo(entries, places, c, rows, outcome)
}

func rowLimits(edges, most []uint32, scales []float64, edge float64) {
	rowLimitsGo(edges, most, scales, edge)
}

func labelKeys(keys []uint32, y []int32, p []float64, rows []int32, m int, slack float64) {
	labelKeysGo(keys, y, p, rows, m, slack)
}

func lagCells(cells []uint16, lags []int64, unit int64, mantissas *[4]int64, base int) bool {
	return false
}
