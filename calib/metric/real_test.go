package metric_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/realdata"
)

// TestMeasuredNumbers compares with accuracies and ECEs that were measured independently, in percent and
// printed to the second decimal (corrupted images: to the first).
func TestMeasuredNumbers(t *testing.T) {
	for _, c := range []struct {
		file, scores string
		k            int
		probs        bool
		labels       string
		acc, ece     float64
		digit        float64
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", 10, false, "test_labels", 81.03, 12.45, .01},
		{"c10jpeg_resnet_logits.npz", "resnet20_gauss_noise_s1", 10, false, "test_labels", 55.5, 33.8, .1},
		{"c10jpeg_resnet_logits.npz", "resnet20_gauss_noise_s3", 10, false, "test_labels", 23.9, 64.8, .1},
		{"c10jpeg_resnet_logits.npz", "resnet20_contrast_s3", 10, false, "test_labels", 58.6, 29.4, .1},
		{"c10jpeg_resnet_logits.npz", "resnet20_gauss_blur_s5", 10, false, "test_labels", 32.4, 53.8, .1},
		{"c100_chenyaofo_logits.npz", "resnet56", 100, false, "test_labels", 72.63, 14.18, .01},
		{"c100_chenyaofo_logits.npz", "vgg16_bn", 100, false, "test_labels", 74.00, 18.88, .01},
		{"c10_resnet18_78acc_wasscal_logits.npz", "test_logits", 10, false, "test_labels", 77.84, 6.05, .01},
		{"c10_wideresnet-16-4_netcal_probs.npz", "test_probs", 10, true, "test_labels", 91.09, 5.37, .01},
		{"c100_wideresnet-16-4_netcal_probs.npz", "test_probs", 100, true, "test_labels", 75.43, 5.81, .01},
		{"mnist_cnn_metacal.npz", "test_logits", 10, false, "test_labels", 99.17, 0.31, .01},
	} {
		t.Run(c.scores+"/"+c.file, func(t *testing.T) {
			s, y := realdata.Scores(t, c.file, c.scores, c.labels)
			r, err := metric.Evaluate(metric.Rows{K: c.k, F32: s, Probs: c.probs, Labels: y}, metric.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(100*r.Accuracy-c.acc) > 0.51*c.digit || math.Abs(100*r.ECE-c.ece) > 0.51*c.digit {
				t.Errorf("got accuracy %.3f ECE %.3f, want %.2f %.2f", 100*r.Accuracy, 100*r.ECE, c.acc, c.ece)
			}
			if !(r.ECELo < r.ECE && r.ECE < r.ECEHi) || r.ECENull <= 0 {
				t.Errorf("interval [%g, %g] about %g, null %g", r.ECELo, r.ECEHi, r.ECE, r.ECENull)
			}
			// Every estimate of the same top-label error must agree in size.
			for _, v := range []float64{r.ACE, r.Sweep, r.SmECE, r.KS} {
				if v > r.ECE+0.01 || v < 0.5*r.ECE-0.01 {
					t.Errorf("far from ECE %g: %+v", r.ECE, r)
				}
			}
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	s, y := realdata.Scores(b, "c10jpeg_resnet_logits.npz", "resnet20", "test_labels")
	for b.Loop() {
		if _, err := metric.Evaluate(metric.Rows{K: 10, F32: s, Labels: y}, metric.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
