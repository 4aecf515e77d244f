package calibrator_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestParameterisedOnRealLogits holds it to what it promises: fitted rows no worse than under plain temperature
// scaling, held-out rows better than uncalibrated, no row's class changed, the same bits for the same seed.
func TestParameterisedOnRealLogits(t *testing.T) {
	testsize.Slow(t)
	for _, set := range []struct {
		file, scores string
		k            int
	}{{"c10jpeg_resnet_logits.npz", "resnet20", 10}, {"c100_chenyaofo_logits.npz", "resnet56", 100}} {
		if testing.Short() && set.k > 10 {
			continue // seconds
		}
		s, y := realdata.Scores(t, set.file, set.scores, "test_labels")
		z, h := widen(s), len(y)/2
		ts, tr, err := calibrator.FitTemperature(calibrator.NewData(z[:h*set.k], set.k, y[:h], nil), opts)
		if err != nil {
			t.Fatal(err)
		}
		_, tsNLL, tsECE := score(ts, z[h*set.k:], set.k, y[h:])
		for _, o := range []calibrator.Parameterised{{}, {MSE: true}} {
			c, r, err := calibrator.FitParameterised(calibrator.NewData(z[:h*set.k], set.k, y[:h], nil),
				calibrator.Options{Parameterised: o})
			if err != nil {
				t.Fatal(err)
			}
			acc0, nll0, _ := score(calibrator.Identity{}, z[h*set.k:], set.k, y[h:])
			acc, nll, ece := score(c, z[h*set.k:], set.k, y[h:])
			t.Logf("%s %+v: fitted NLL %.5f (TS %.5f), held out NLL %.5f (TS %.5f, before %.5f), ECE %.4f (TS %.4f), "+
				"%d evaluations, converged %v",
				set.scores, o, r.NLLAfter, tr.NLLAfter, nll, tsNLL, nll0, ece, tsECE, r.Iterations, r.Converged)
			if acc != acc0 {
				t.Errorf("accuracy %g, before %g", acc, acc0)
			}
			if !o.MSE && r.NLLAfter > tr.NLLAfter {
				t.Errorf("fitted NLL %.9f, temperature scaling %.9f", r.NLLAfter, tr.NLLAfter)
			}
			if nll >= nll0 {
				t.Errorf("held-out NLL %.6f, before %.6f", nll, nll0)
			}
			if o.MSE || set.k > 10 {
				continue
			}
			again, _, _ := calibrator.FitParameterised(calibrator.NewData(z[:h*set.k], set.k, y[:h], nil), opts)
			if !reflect.DeepEqual(again, c) {
				t.Error("the same rows and seed gave another network")
			}
		}
	}
}

func TestParameterisedInvariance(t *testing.T) {
	z, y := synthetic(400, 6, 2, 3)
	c, _, err := calibrator.FitParameterised(calibrator.NewData(z, 6, y, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 3))
	row, moved := make([]float64, 6), make([]float64, 6)
	varies := false
	for i := range y {
		copy(row, z[6*i:6*i+6])
		want := c.T(row)
		for k, j := range rng.Perm(6) {
			moved[j] = row[k] + 64 // exact enough: T reads differences
		}
		if got := c.T(moved); math.Abs(got-want) > 1e-9*want {
			t.Errorf("row %d: T %.12g, moved and in another order %.12g", i, want, got)
		}
		if !(want >= calibrator.MinTemperature && want <= calibrator.MaxTemperature) {
			t.Errorf("row %d: T %g", i, want)
		}
		varies = varies || math.Abs(want-c.T(z[:6])) > 1e-3
	}
	if !varies {
		t.Error("T is the same for every row")
	}
}

func TestParameterisedOptions(t *testing.T) {
	z, y := synthetic(100, 4, 2, 3)
	for _, bad := range []calibrator.Parameterised{{Top: -1}, {Top: calibrator.MaxTop + 1}, {Hidden: -1},
		{Hidden: calibrator.MaxHidden + 1}, {Steps: -1}, {Ridge: -1}, {Ridge: math.NaN()}} {
		if _, _, err := calibrator.FitParameterised(calibrator.NewData(z, 4, y, nil),
			calibrator.Options{Parameterised: bad}); err == nil {
			t.Errorf("%+v accepted", bad)
		}
	}
	// One logit says nothing of the row but its maximum, which is taken off: plain temperature scaling.
	c, r, err := calibrator.FitParameterised(calibrator.NewData(z, 4, y, nil),
		calibrator.Options{Parameterised: calibrator.Parameterised{Top: 1}})
	ts, tr, _ := calibrator.FitTemperature(calibrator.NewData(z, 4, y, nil), opts)
	if err != nil || math.Abs(c.T(z[:4])-ts.T()) > 1e-4*ts.T() || math.Abs(r.NLLAfter-tr.NLLAfter) > 1e-9 {
		t.Errorf("top 1: T %g, NLL %.9f, %v, want T %g, NLL %.9f", c.T(z[:4]), r.NLLAfter, err, ts.T(), tr.NLLAfter)
	}
}
