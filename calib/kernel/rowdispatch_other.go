//go:build (!amd64 && !arm64) || purego

package kernel

// start has nothing to do where the maxima are not found ahead.
func (a *sums) start([]float32, int) {}

// blocks makes the first n rows; a bit of bad is a row that the float64 path must do, of the last block.
func (a *sums) blocks(rows []Row, e, z []float32, k int, p *params) (n int, bad uint32) {
	return a.oneBlock(rows, e, z, k, p)
}

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do. z goes on to the last row.
func (a *sums) block(rows []Row, e, z []float32, k int, p *params) (bad uint32) {
	return a.blockGo(rows, e, z, k, p)
}

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do.
func (a *probSums) block(rows []Row, q []float32, k int, least float64) (bad uint32) {
	return a.blockGo(rows, q, k, least)
}
