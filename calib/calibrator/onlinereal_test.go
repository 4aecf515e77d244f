package calibrator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/realdata"
)

// stream is the top confidences and outcomes of logits, in an order that is shuffled.
func stream(t *testing.T, scores string, seed uint64) (c []float64, right []bool) {
	t.Helper()
	z, y := realdata.Scores(t, "c10jpeg_resnet_logits.npz", scores, "test_labels")
	p, row := make([]float64, 10), make([]float64, 10)
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(y)) {
		a := 0
		for j, v := range z[10*i : 10*i+10] {
			row[j] = float64(v)
			if row[j] > row[a] {
				a = j
			}
		}
		calibrator.Identity{}.Apply(p, row)
		c, right = append(c, p[a]), append(right, a == int(y[i]))
	}
	return c, right
}

// TestOnlinePlattUnderDrift lets the images get noise: clean ones, then one noise, then a worse one. The fixed map is
// fitted on clean rows.
func TestOnlinePlattUnderDrift(t *testing.T) {
	c, right := stream(t, "resnet20", 1)
	fixed, _, err := calibrator.FitPlattConfidence(c[:5000], right[:5000], nil)
	if err != nil {
		t.Fatal(err)
	}
	c, right = c[5000:], right[5000:]
	for _, name := range []string{"resnet20_gauss_noise_s1", "resnet20_gauss_blur_s3", "resnet20_gauss_noise_s3"} {
		more, hits := stream(t, name, 2)
		c, right = append(c, more[:5000]...), append(right, hits[:5000]...)
	}
	measure := func(f []float64) (loss, ece float64) {
		for i, v := range f {
			if !right[i] {
				v = 1 - v
			}
			loss -= math.Log(max(v, 0x1p-53)) / float64(len(f))
		}
		return loss, metric.ECE(metric.EqualWidth(f, right, nil, 15))
	}
	f := make([]float64, len(c))
	for i, v := range c {
		f[i] = fixed.Map(v)
	}
	loss0, ece0 := measure(f)
	t.Logf("fixed: log loss %.4f ECE %.4f", loss0, ece0)
	for name, kind := range map[string]calibrator.Calibeating{
		"plain": calibrator.Plain, "tracking": calibrator.Tracking, "hedging": calibrator.Hedging,
	} {
		o, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Calibeating: kind})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range c {
			f[i] = o.Predict(v)
			if err := o.Update(v, right[i]); err != nil {
				t.Fatal(err)
			}
		}
		loss, ece := measure(f)
		t.Logf("%s: log loss %.4f ECE %.4f, %s", name, loss, ece, o.Describe())
		if ece > ece0/2 || loss > loss0 {
			t.Errorf("%s: log loss %.4f, ECE %.4f, fixed %.4f, %.4f", name, loss, ece, loss0, ece0)
		}
	}
}
