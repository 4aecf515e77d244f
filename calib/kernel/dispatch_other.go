//go:build !amd64 || purego

package kernel

// block makes up to 16 rows; a bit of the result is a row that the float64 path must do.
func (a *probSums) block(rows []Row, q []float32, k int, least float64) (bad uint32) {
	return a.blockGo(rows, q, k, least)
}

// halfVector converts what vector instructions can and returns how many.
func halfVector([]float32, []uint16) int { return 0 }

// fill returns false where there is no vector path.
func (o *Outcomes) fill(*LabelledRows) bool { return false }

// expRow returns how many differences vector instructions can do.
func expRow([]float64, []float32, float64) int { return 0 }
