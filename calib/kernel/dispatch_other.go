//go:build !amd64 || purego

package kernel

// halfVector converts what vector instructions can and returns how many.
func halfVector([]float32, []uint16) int { return 0 }

// fill returns false where there is no vector path.
func (o *Outcomes) fill(*LabelledRows) bool { return false }

// expRow returns how many differences vector instructions can do.
func expRow([]float64, []float32, float64) int { return 0 }
