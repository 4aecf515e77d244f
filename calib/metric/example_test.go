package metric_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
)

func ExampleEvaluate() {
	r, err := metric.Evaluate(metric.Rows{
		K:      3,
		F32:    []float32{4, 0, 0, 0, 3, 1, 5, 1, 0, 0, 2, 0},
		Labels: []int32{0, 1, 2, 1},
	}, metric.Options{})
	fmt.Printf("n %d, accuracy %.2f, ece %.4f, nll %.4f, %v\n", r.N, r.Accuracy, r.ECE, r.NLL, err)
	// Output: n 4, accuracy 0.75, ece 0.3274, nll 1.3675, <nil>
}

func ExampleResample() {
	// 100 rows of confidence .9, 80 of them right.
	bins := []metric.Bin{{N: 100, W: 100, SumC: 90, SumA: 80}}
	iv := metric.Resample(bins, 1000, 1)
	fmt.Printf("ece %.2f, calibrated models show %.3f; above chance: %v\n", metric.ECE(bins), iv.Null, metric.ECE(bins) > iv.NullHi)
	// Output: ece 0.10, calibrated models show 0.023; above chance: true
}

func ExampleSBECELB() {
	c, a := []float64{0.6, 0.8, 0.9, 0.95}, []bool{true, false, true, true}
	s := metric.SoftBins(c, a, nil, 15, 0.01)
	fmt.Printf("bin %.4f, lb %.4f\n", metric.SBECEBin(s, 2), metric.SBECELB(s))
	// Output: bin 0.2963, lb 0.3013
}
