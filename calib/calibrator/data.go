package calibrator

import "github.com/plumbline/plumbline/calib/kernel"

// Data is what a calibrator is fitted to: n rows of scores with their labels. A fit leaves it as it is.
type Data[T kernel.Float] struct {
	Scores  []T // n×K, row-major: logits to ±1e100, or probabilities with Options.Probs
	K       int
	Labels  []int32   // n classes in [0, K)
	Weights []float64 // n, each 0 or 1e-100..1e100; nil: all 1
}

// NewData is the Data of these slices, which it keeps: n×K scores, n labels, and n weights or nil.
func NewData[T kernel.Float](scores []T, k int, labels []int32, weights []float64) Data[T] {
	return Data[T]{Scores: scores, K: k, Labels: labels, Weights: weights}
}

func (d *Data[T]) row(i int) []T { return d.Scores[i*d.K : (i+1)*d.K] }

func (d *Data[T]) weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}
