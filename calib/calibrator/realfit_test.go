package calibrator_test

import (
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

// score is the accuracy, NLL and ECE (15 bins, top label) of c on the rows.
func score(c calibrator.Calibrator, z []float64, k int, y []int32) (accuracy, nll, ece float64) {
	conf, right := make([]float64, len(y)), make([]bool, len(y))
	p := make([]float64, k)
	for i, yi := range y {
		c.Apply(p, z[i*k:(i+1)*k])
		a := argmax(p)
		conf[i], right[i] = p[a], a == int(yi)
		if right[i] {
			accuracy++
		}
		nll -= math.Log(max(p[yi], math.SmallestNonzeroFloat64))
	}
	n := float64(len(y))
	return accuracy / n, nll / n, metric.ECE(metric.EqualWidth(conf, right, nil, 15))
}

// lowersNLL are the methods that must lower the held-out NLL of an over-confident network. The others fit something
// else, or may give a class that is never right in a bin the probability 0.
var lowersNLL = []string{"temperature", "temperature_sbece", "ensemble_temperature", "class_temperature",
	"parameterised_temperature", "vector", "matrix", "dirichlet", "platt", "beta", "intra_order_preserving"}

// slow are the methods that are left out at K = 100: K² parameters, or many rounds.
var slow = []string{"matrix", "dirichlet", "class_temperature+cls", "parameterised_temperature+cls"}

// TestRealLogits fits every method on half of real, over-confident logits and scores it on the other half: ECE falls
// to less than half, and no row changes its class where the method says so.
func TestRealLogits(t *testing.T) {
	testsize.Slow(t)
	for _, set := range []struct {
		file, scores string
		k            int
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", 10},
		{"c100_chenyaofo_logits.npz", "resnet56", 100},
	} {
		if testing.Short() && set.k > 10 {
			continue // seconds
		}
		s, y := realdata.Scores(t, set.file, set.scores, "test_labels")
		z, n := widen(s), len(y)
		h := n / 2
		fitZ, fitY, testZ, testY := z[:h*set.k], y[:h], z[h*set.k:], y[h:n]
		acc0, nll0, ece0 := score(calibrator.Identity{}, testZ, set.k, testY)
		t.Logf("%-10s %-30s accuracy %.4f NLL %.4f ECE %.4f", set.scores, "identity", acc0, nll0, ece0)
		for _, m := range everyMethod() {
			if set.k > 10 && slices.Contains(slow, m.Name) || m.Name == "identity" {
				continue
			}
			c, r, err := calibrator.Fit(m.Name, calibrator.NewData(fitZ, set.k, fitY, nil), opts)
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
				continue
			}
			acc, nll, ece := score(c, testZ, set.k, testY)
			t.Logf("%-10s %-30s accuracy %.4f NLL %.4f ECE %.4f, %d evaluations %v", set.scores, m.Name, acc, nll, ece,
				r.Iterations, r.Warnings)
			if ece >= ece0/2 {
				t.Errorf("%s: ECE %.4f, want less than half of the identity's %.4f", m.Name, ece, ece0)
			}
			if slices.Contains(lowersNLL, m.Name) && nll >= nll0 {
				t.Errorf("%s: NLL %.4f, want less than the identity's %.4f", m.Name, nll, nll0)
			}
			if m.KeepsArgmax {
				sameClasses(t, m.Name, c, z, set.k)
			}
		}
	}
}

// sameClasses holds that no row changes its class.
func sameClasses(t *testing.T, name string, c calibrator.Calibrator, z []float64, k int) {
	t.Helper()
	p := make([]float64, len(z))
	if err := calibrator.ApplyRows(c, p, z, k, false); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(z); i += k {
		if a, b := argmax(z[i:i+k]), argmax(p[i:i+k]); a != b {
			t.Errorf("%s: row %d: class %d, before %d", name, i/k, b, a)
		}
	}
}
