//go:build !amd64 || purego

package fixedpoint

func addScaled(dense []int64, to list, r *scaledRow) (listed int, zero, bad bool) {
	return addScaledGo(dense, to, r)
}

func addScaledRows(dense []int64, to *Large, r *ScaledRows, at int) (done int) {
	return addScaledEach(dense, to, r, at)
}

func addSoft(sums SoftSums, g, e []float64, r SoftRow) { addSoftGo(sums, g, e, r) }

func addSoftRows(to *OutcomeSums, g []float64, r SoftRows) bool { return false }

func (r *CellRows) find(near []uint8, c, w []float64) bool { return false }

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

func (l *LabelRows) keys(dst []uint32, m int, slack float64) { l.keysGo(dst, m, slack) }

func lagCells(cells []uint16, lags []int64, unit int64, mantissas *[4]int64, base int) bool {
	return false
}
