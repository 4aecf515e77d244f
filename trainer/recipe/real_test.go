package recipe_test

import (
	"context"
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// score is accuracy and ECE, 15 bins, of a head on rows, in percent.
func score(t testing.TB, h *head.Head, s *data.Set) (accuracy, ece float64) {
	t.Helper()
	z := head.NewPass(h, s.N(), head.Gonum{}).Forward(h, s.Chunk(nil, 0, s.N()), s.N())
	r, err := metric.Evaluate(metric.Rows{K: h.K(), F32: z, Labels: s.Y}, metric.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return 100 * r.Accuracy, 100 * r.ECE
}

func run(t testing.TB, cfg recipe.Config, in recipe.Input) (*head.Head, recipe.Report) {
	t.Helper()
	h, report, err := recipe.Run(context.Background(), cfg, in, backend.Go{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h, report
}

// drifted are 4,000 rows that train, 1,000 that validate and 5,000 that test, of a corruption.
func drifted(t testing.TB, array string) (recipe.Input, *data.Set) {
	in := recipe.Input{
		Train:   realRows(t, array, "test_labels", 0, 4000),
		Valid:   realRows(t, array, "test_labels", 4000, 5000),
		Current: realHead(t),
	}
	return in, realRows(t, array, "test_labels", 5000, 10000)
}

// TestRealDrift: after a corruption of the images, a fine-tuned head wins back at least 15 points of accuracy.
func TestRealDrift(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  recipe.Config
		ece  float64
	}{{"cross-entropy", recipe.CrossEntropy(), 2.5}, {"AU", recipe.AU(), 2.5}} {
		in, test := drifted(t, "gauss_noise_s1_f")
		before, eceBefore := score(t, in.Current, test)
		c.cfg.Seed, c.cfg.Epochs = 1, 15
		h, report := run(t, c.cfg, in)
		after, ece := score(t, h, test)
		t.Logf("%s: accuracy %.2f -> %.2f, ECE %.2f -> %.2f, best epoch %d",
			c.name, before, after, eceBefore, ece, report.Best)
		if after-before < 15 || ece > c.ece {
			t.Errorf("%s: accuracy %.2f -> %.2f, ECE %.2f; want a gain of 15 and ECE of at most %.1f",
				c.name, before, after, ece, c.ece)
		}
	}
}

// clean are 5,000 training rows of the clean images, drawn by seed (the file has them in order of class), 1,000 test
// images that validate and 9,000 that test.
func clean(t testing.TB, seed uint64) (recipe.Input, *data.Set) {
	all := realRows(t, "train_features", "train_labels", 0, 0)
	in := recipe.Input{Train: all.Select(data.Shuffled(data.Rows(all.N()), seed, 0)[:5000]), Current: realHead(t)}
	in.Valid = realRows(t, "test_features", "test_labels", 0, 1000)
	return in, realRows(t, "test_features", "test_labels", 1000, 10000)
}

// TestRealMaCCal: on clean data the stable preset stays calibrated.
func TestRealMaCCal(t *testing.T) {
	testsize.Slow(t)
	in, test := clean(t, 1)
	cfg := recipe.MaCCalStable()
	cfg.Seed = 1
	h, report := run(t, cfg, in)
	acc, ece := score(t, h, test)
	last := report.Epochs[len(report.Epochs)-1]
	t.Logf("stable: accuracy %.2f, ECE %.2f, q %.3f", acc, ece, last.Q)
	if acc < 82.3 || ece > 2.5 {
		t.Errorf("accuracy %.2f, ECE %.2f; want at least 82.3 and at most 2.5", acc, ece)
	}
}

// TestRealPrinted: as printed, q rises to 1 and the result is that of the bottleneck without masks, within a point.
func TestRealPrinted(t *testing.T) {
	testsize.Slow(t)
	in, test := clean(t, 1)
	printed := recipe.MaCCalPrinted()
	printed.Seed = 1
	bottleneck := printed
	bottleneck.MaCCal = nil
	h, report := run(t, printed, in)
	plain, _ := run(t, bottleneck, in)
	acc, ece := score(t, h, test)
	accPlain, ecePlain := score(t, plain, test)
	t.Logf("printed: accuracy %.2f, ECE %.2f; without masks %.2f, %.2f", acc, ece, accPlain, ecePlain)
	if q := report.Epochs[20].Q; q != 1 || math.Abs(acc-accPlain) > 1 || math.Abs(ece-ecePlain) > 1 {
		t.Errorf("q %v after 20 epochs, accuracy %.2f and %.2f, ECE %.2f and %.2f", q, acc, accPlain, ece, ecePlain)
	}
}

// TestRealAU: on clean data and at equal weight decay, the ECE of AU is at least half a point below cross-entropy's.
func TestRealAU(t *testing.T) {
	testsize.Slow(t)
	var ce, au float64
	const seeds = 3
	for seed := range uint64(seeds) {
		in, test := clean(t, seed)
		for _, c := range []struct {
			cfg recipe.Config
			sum *float64
		}{{recipe.CrossEntropy(), &ce}, {recipe.AU(), &au}} {
			c.cfg.Seed = seed
			h, _ := run(t, c.cfg, in)
			_, ece := score(t, h, test)
			*c.sum += ece / seeds
		}
	}
	t.Logf("ECE: cross-entropy %.2f, AU %.2f", ce, au)
	if ce-au < 0.5 {
		t.Errorf("ECE: cross-entropy %.2f, AU %.2f; want a difference of at least 0.5", ce, au)
	}
}
