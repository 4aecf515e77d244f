package fixedpoint

// Find finds the cells of the confidence grid of calib/acc, and the sums, of n = len(c) rows of confidence c in [0,1]
// and weight w < Limit, n a multiple of 8:
//
//	Key = 2·cell,  WC = Round(w·c),  WC2 = Round(w·c·c)
//
// The cell is right but for rows with c·3600 within 1e-9 of an integer i < 3600; their bits are set in near, which has
// n/8 values, and so are those within 1e-9 + 1.2e-6·i, where a rounded confidence may be beside the edge of its cell.
// Find returns false, and does nothing, where there is no vector path. It panics on shorter results.
func (r *CellRows) Find(near []uint8, c, w []float64) bool {
	n := len(c)
	if n%8 != 0 {
		panic("fixedpoint: rows are not a multiple of 8")
	}
	if n == 0 {
		return true
	}
	_, _, _ = r.Key[:n], r.WC[:n], r.WC2[:n]
	return r.find(near[:n/8], c, w[:n])
}

// LongLag is what LagCells leaves where a lag is 2^53 or more.
const LongLag = 1<<16 - 1

// LagCells finds the cells of lags, four to an octave: max(0, min(lag, 1)) below unit; from there on, with lag = 2^e·μ
// as a float64, 4·(1023+e) - base and one more for each of mantissas, the bits of its fraction, that is not above those
// of μ. It returns false, and does nothing, where there is no vector path. It panics on shorter cells.
func LagCells(cells []uint16, lags []int64, unit int64, mantissas *[4]int64, base int) bool {
	return len(lags) == 0 || lagCells(cells[:len(lags)], lags, unit, mantissas, base)
}
