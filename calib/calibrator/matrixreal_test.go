package calibrator_test

import (
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestMatrixOnRealLogits holds that the default penalties make K² parameters worth having: the held-out NLL is below
// that of temperature scaling, with many rows for a parameter and with few.
func TestMatrixOnRealLogits(t *testing.T) {
	testsize.Slow(t)
	for _, c := range []struct {
		file, scores string
		k, n         int
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", 10, 5000},
		{"c10jpeg_resnet_logits.npz", "resnet20", 10, 500},
		{"c100_chenyaofo_logits.npz", "resnet56", 100, 5000},
		{"c100_chenyaofo_logits.npz", "vgg16_bn", 100, 5000},
	} {
		if testing.Short() && c.k > 10 {
			continue // seconds
		}
		s, y := realdata.Scores(t, c.file, c.scores, "test_labels")
		z := widen(s)
		fitZ, fitY, testZ, testY := z[:c.n*c.k], y[:c.n], z[5000*c.k:], y[5000:]
		ts, _, err := calibrator.FitTemperature(calibrator.NewData(fitZ, c.k, fitY, nil), calibrator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, nll0, ece0 := score(ts, testZ, c.k, testY)
		t.Logf("%s, %d rows: temperature NLL %.4f ECE %.4f", c.scores, c.n, nll0, ece0)
		for _, method := range []string{"dirichlet", "matrix", "vector"} {
			m, r, err := calibrator.Fit(method, calibrator.NewData(fitZ, c.k, fitY, nil), calibrator.Options{})
			if err != nil || !r.Converged {
				t.Fatalf("%s: %+v, %v", method, r, err)
			}
			acc, nll, ece := score(m, testZ, c.k, testY)
			t.Logf("%s: accuracy %.4f NLL %.4f ECE %.4f, %d passes", method, acc, nll, ece, r.Iterations)
			if nll >= nll0 && method != "vector" {
				t.Errorf("%s, %d rows, %s: NLL %.4f, temperature %.4f", c.scores, c.n, method, nll, nll0)
			}
		}
	}
}
