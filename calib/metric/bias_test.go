package metric_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/realdata"
)

// probabilityRows turns real float32 logits into float64 probabilities.
func probabilityRows(t *testing.T, file, array string, k int) metric.Rows {
	z, y := realdata.Scores(t, file, array, "test_labels")
	r := metric.Rows{K: k, Probs: true, F64: make([]float64, len(z)), Labels: y}
	for i := range y {
		kernel.Logits(z[i*k:(i+1)*k], r.F64[i*k:(i+1)*k])
	}
	return r
}

// drawCalibrated takes n of the rows and draws their labels from their own probabilities.
func drawCalibrated(r metric.Rows, n int, rng *rand.Rand) metric.Rows {
	out := metric.Rows{K: r.K, Probs: true}
	for _, i := range rng.Perm(len(r.Labels))[:n] {
		p := r.F64[i*r.K : (i+1)*r.K]
		u, y := rng.Float64(), 0
		for u -= p[0]; u >= 0 && y < r.K-1; u -= p[y] {
			y++
		}
		out.F64, out.Labels = append(out.F64, p...), append(out.Labels, int32(y))
	}
	return out
}

// TestBiasOfCalibratedRows prints what docs/metrics.md quotes (go test -run TestBiasOfCalibratedRows -v): what each
// calibration error shows of rows whose true error is 0.
func TestBiasOfCalibratedRows(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of resampling")
	}
	keys := []string{"ece", "ece_null", "ece_l2", "mce", "ace", "cwece", "debiased_l2", "ks", "sweep", "smece",
		"sbece_bin", "sbece_lb"}
	var table strings.Builder
	fmt.Fprintf(&table, "\n| calibrated rows | `%s` |\n|%s\n", strings.Join(keys, "` | `"),
		strings.Repeat("---|", len(keys)+1))
	bias := func(name string, r metric.Rows) {
		for _, n := range []int{100, 1000, 10000} {
			runs := map[int]int{100: 100, 1000: 40, 10000: 20}[n]
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			mean := map[string]float64{}
			for range runs {
				for key, v := range values(evaluate(t, drawCalibrated(r, n, rng), metric.Options{Resamples: 50})) {
					mean[key] += v / float64(runs)
				}
			}
			fmt.Fprintf(&table, "| %s, n = %d |", name, n)
			for _, key := range keys {
				fmt.Fprintf(&table, " %s |", strings.TrimPrefix(fmt.Sprintf("%.3f", mean[key]), "0"))
			}
			table.WriteString("\n")
			// What the text says of the table.
			if d := mean["ece_null"]/mean["ece"] - 1; d < -.1 || d > .1 {
				t.Errorf("%s n = %d: ece_null %g is not the ece %g of calibrated rows", name, n, mean["ece_null"],
					mean["ece"])
			}
			if mean["debiased_l2"] > 0.7*mean["ece_l2"] || mean["debiased_l2"] == 0 {
				t.Errorf("%s n = %d: debiased_l2 %g, ece_l2 %g", name, n, mean["debiased_l2"], mean["ece_l2"])
			}
			if mean["sweep"] > mean["ece"] || mean["ks"] > mean["ece"] {
				t.Errorf("%s n = %d: sweep %g and ks %g are above ece %g", name, n, mean["sweep"], mean["ks"],
					mean["ece"])
			}
		}
	}
	bias("spread, K = 10", calibratedRows(20_000, 10, 0, 5))
	t.Run("real", func(t *testing.T) { // skips alone
		bias("CIFAR-10", probabilityRows(t, "c10_chenyaofo19_logits.npz", "mobilenetv2_x1_0", 10))
		bias("CIFAR-100", probabilityRows(t, "c100_chenyaofo_logits.npz", "resnet56", 100))
	})
	t.Log(table.String())
}
