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

func ExampleEvaluate_weights() {
	// The second row was sampled at a tenth of the rate of the first: it stands for ten.
	r, _ := metric.Evaluate(metric.Rows{
		K: 2, F64: []float64{2, 0, 2, 0}, Labels: []int32{0, 1}, W: []float64{1, 10},
	}, metric.Options{})
	fmt.Printf("n %d, accuracy %.3f\n", r.N, r.Accuracy)
	// Output: n 2, accuracy 0.091
}

func ExampleBasic() {
	b, err := metric.Basic(metric.Rows{K: 2, F32: []float32{2, 0, 0, 1}, Labels: []int32{0, 0}}, metric.Options{})
	fmt.Printf("nll %.4f, brier %.4f, ece %.4f, cwece %.4f, %v\n", b.NLL, b.Brier, b.ECE, b.CWECE, err)
	// Output: nll 0.7201, brier 0.5487, ece 0.4251, cwece 0.4251, <nil>
}

func ExampleEqualWidth() {
	bins := metric.EqualWidth([]float64{0.55, 0.9, 0.95, 1}, []bool{false, true, true, false}, nil, 10)
	fmt.Printf("ece %.3f, mce %.3f\n", metric.ECE(bins), metric.MCE(bins))
	// Output: ece 0.400, mce 0.550
}

func ExampleSort() {
	s := metric.SortWeighted([]float64{0.9, 0.6, 0.8}, []bool{true, false, true}, nil)
	fmt.Printf("ks %.3f, aurc %.3f, auroc %.1f, fpr95 %.1f\n", metric.KS(s), metric.AURC(s), metric.AUROC(s),
		metric.FPR95(s))
	fmt.Printf("ace %.3f, sweep %.3f\n", metric.ECE(metric.EqualMass(s, 3)), metric.ECE(metric.Sweep(s)))
	// Output:
	// ks 0.200, aurc 0.111, auroc 1.0, fpr95 0.0
	// ace 0.300, sweep 0.167
}

func ExampleSmECE() {
	c, a := []float64{0.6, 0.8, 0.9, 0.95}, []bool{true, false, true, true}
	fmt.Printf("%.4f\n", metric.SmECE(c, a, nil))
	// Output: 0.1379
}

func ExampleClassWise() {
	c := metric.NewClassWise(3, 15)
	c.AddWeighted([]float64{0.7, 0.2, 0.1}, 0, 1)
	c.AddWeighted([]float64{0.1, 0.3, 0.6}, 1, 1)
	fmt.Printf("cwece %.3f, l2 %.3f\n", c.ECE(), c.ECEL2())
	// Output: cwece 0.333, l2 0.408
}

func ExampleReliability() {
	bins := metric.EqualWidth([]float64{0.6, 0.7, 0.9, 0.95, 1}, []bool{false, true, true, true, true}, nil, 2)
	for _, b := range metric.Reliability(bins, metric.Wilson) {
		if b.N > 0 {
			fmt.Printf("(%.1f, %.1f]: %d rows, conf %.2f, acc %.2f in [%.2f, %.2f]\n", b.Lo, b.Hi, b.N, b.Conf, b.Acc,
				b.AccLo, b.AccHi)
		}
	}
	// Output: (0.5, 1.0]: 5 rows, conf 0.83, acc 0.80 in [0.38, 0.96]
}

func ExampleRiskCoverage() {
	s := metric.SortWeighted([]float64{0.9, 0.8, 0.8, 0.6}, []bool{true, true, false, false}, nil)
	curve := metric.RiskCoverage(s)
	for _, p := range curve {
		fmt.Printf("accept c ≥ %.1f: %.0f %% of the rows, %.2f of them wrong\n", p.Threshold, 100*p.Coverage, p.Risk)
	}
	fmt.Printf("aurc %.4f\n", metric.RiskArea(curve))
	// Output:
	// accept c ≥ 0.9: 25 % of the rows, 0.00 of them wrong
	// accept c ≥ 0.8: 75 % of the rows, 0.33 of them wrong
	// accept c ≥ 0.6: 100 % of the rows, 0.50 of them wrong
	// aurc 0.2708
}

func ExampleResample() {
	// 100 rows of confidence .9, 80 of them right.
	bins := []metric.Bin{{N: 100, W: 100, SumC: 90, SumA: 80}}
	iv := metric.Resample(bins, 1000, 1)
	fmt.Printf("ece %.2f, calibrated models show %.3f; above chance: %v\n", metric.ECE(bins), iv.Null,
		metric.ECE(bins) > iv.NullHi)
	// Output: ece 0.10, calibrated models show 0.023; above chance: true
}

func ExampleResampleBins() {
	bins := []metric.Bin{{N: 100, W: 100, SumC: 90, SumA: 80}, {N: 10, W: 10, SumC: 6, SumA: 6}}
	iv := metric.ResampleBins(bins, metric.MCE, 1000, 1)
	fmt.Printf("mce %.2f, calibrated models show %.2f\n", metric.MCE(bins), iv.Null)
	// Output: mce 0.10, calibrated models show 0.12
}

func ExampleSBECELB() {
	c, a := []float64{0.6, 0.8, 0.9, 0.95}, []bool{true, false, true, true}
	s := metric.SoftBins(c, a, nil, 15, 0.01)
	fmt.Printf("bin %.4f, lb %.4f\n", metric.SBECEBin(s, 2), metric.SBECELB(s))
	// Output: bin 0.2963, lb 0.3013
}

func ExampleCDFCurve() {
	h := metric.CDFWeights([]float64{0.3, 0.5, 0.9, 0.95}, nil, metric.CDFBins)
	grid, g := metric.CDFCurve(h, 0.05)
	fmt.Printf("G(%.1f) = %.3f\n", grid[35], g[35])
	// Output: G(0.7) = 0.500
}

func ExampleUncertaintyCells() {
	cells := metric.Groups(metric.SortWeighted([]float64{.6, .6, .8, .8, .8, .9},
		[]bool{true, false, true, true, false, true}, nil))
	iv, _ := metric.UncertaintyCells(cells, "ks", metric.Options{})
	fmt.Printf("ks %.2f, calibrated models show %.2f\n", metric.KSCells(cells), iv.Null)
	// Output: ks 0.10, calibrated models show 0.17
}
