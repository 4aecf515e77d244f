package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/vexp"
)

const (
	// maxScore bounds the logits on which a map of logits is fitted; further out, its curvature overflows.
	maxScore = 1e6
	// applyScore bounds the logits that are multiplied; with parameters up to maxParam nothing overflows.
	applyScore = 1e100
)

// moderate refuses logits beyond maxScore.
func (s *sample) moderate() error {
	for i, v := range s.z {
		if math.Abs(v) > maxScore {
			return fmt.Errorf("fit %s: score %d of fitted row %d: %g, allowed %g..%g", s.method, i%s.k, i/s.k, v,
				-maxScore, maxScore)
		}
	}
	return nil
}

// temperatureStart is temperature scaling of the sample, from where fits of more parameters go on; logits beyond
// maxScore are an error.
func (s *sample) temperatureStart() (Temperature, FitReport, error) {
	if err := s.moderate(); err != nil {
		return Temperature{}, FitReport{}, err
	}
	return FitTemperature(s.data(), Options{})
}

// bounded is v within ±applyScore; NaN and +Inf give NaN.
func bounded(v float64) float64 {
	if math.IsInf(v, 1) {
		return math.NaN()
	}
	return max(-applyScore, min(applyScore, v))
}

// mustHave panics unless a calibrator of k classes was given a row of k.
func mustHave(method string, k, got int) {
	if k != got {
		panic(fmt.Sprintf("calibrator: %s of %d classes on a row of %d", method, k, got))
	}
}

// nllGrad turns the logits u of a row into softmax(u) - e_y in place and returns the row's NLL.
func nllGrad(u []float64, y int32) float64 {
	top := math.Inf(-1)
	for _, v := range u {
		top = max(top, v)
	}
	uy := u[y] - top
	vexp.Shifted(u, u, top)
	sum := total(u)
	for k, scale := 0, 1/sum; k < len(u); k++ {
		u[k] *= scale
	}
	u[y]--
	return math.Log(sum) - uy
}

// total is Σ v in a fixed order, in four parts, so that one sum need not wait for the other.
func total(v []float64) float64 {
	var s0, s1, s2, s3 float64
	for ; len(v) >= 4; v = v[4:] {
		s0 += v[0]
		s1 += v[1]
		s2 += v[2]
		s3 += v[3]
	}
	for _, x := range v {
		s0 += x
	}
	return (s0 + s1) + (s2 + s3)
}
