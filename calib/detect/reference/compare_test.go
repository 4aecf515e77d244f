package reference

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
)

// draw makes a window of n rows whose rate of right ones is c + bias.
func draw(t testing.TB, rng *rand.Rand, n int, bias float64) Window {
	t.Helper()
	var g acc.Grid
	var w Window
	for range n {
		c := 1 - .6*rng.Float64()*rng.Float64()
		right := rng.Float64() < c+bias
		if err := g.Add(c, 1, right); err != nil {
			t.Fatal(err)
		}
		x := -math.Log(c)
		if !right {
			x = -math.Log(1.001 - c)
		}
		w.NLL.W++
		w.NLL.Sum += x
		w.NLL.Square += x * x
	}
	bins, err := g.Bins(15)
	if err != nil {
		t.Fatal(err)
	}
	w.Bins, w.Cells = bins, g.Groups()
	return w
}

func compare(t testing.TB, ref, cur Window) Changes {
	t.Helper()
	c, err := Compare(ref, cur)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func smECE(t testing.TB, ref, cur Window) Change {
	t.Helper()
	c, err := SmECE(ref, cur, Options{Resamples: 60, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCoverage: of windows from one distribution, of different sizes, about 95 % of the intervals hold 0.
func TestCoverage(t *testing.T) {
	const trials = 300
	miss := map[string]int{}
	curves := 0
	rng := rand.New(rand.NewPCG(1, 1))
	for range trials {
		ref, cur := draw(t, rng, 3000, -.05), draw(t, rng, 800, -.05)
		ref.Cells, cur.Cells = nil, nil
		c := compare(t, ref, cur)
		for name, x := range map[string]Change{"accuracy": c.Accuracy, "nll": c.NLL, "ece": c.ECE} {
			if !(x.Lo <= x.Difference && x.Difference <= x.Hi) {
				t.Fatalf("%s: %+v", name, x)
			}
			if x.Significant() {
				miss[name]++
			}
		}
		for _, b := range c.Curve {
			if b.PHolm < .05 {
				curves++
				break
			}
		}
	}
	t.Logf("intervals without 0, of %d: %v; curves at 5 %%: %d", trials, miss, curves)
	for name, n := range miss {
		if n > trials*10/100 { // 5 % + 4 standard errors; quantiles of 60 resamples are narrow
			t.Errorf("%s: %d of %d intervals miss, want about 5 %%", name, n, trials)
		}
	}
	if miss["accuracy"]+miss["nll"] < trials*4/100 {
		t.Errorf("%d of %d intervals of accuracy and NLL miss: far too wide", miss["accuracy"]+miss["nll"], 2*trials)
	}
	if curves > trials*9/100 {
		t.Errorf("%d of %d equal curves differ at 5 %%", curves, trials)
	}
}

// TestCellsCover: the same for what is read from cells, which takes longer to resample. One of 20 intervals misses on
// average.
func TestCellsCover(t *testing.T) {
	const trials = 24
	rng := rand.New(rand.NewPCG(6, 1))
	miss := 0
	for range trials {
		x := smECE(t, draw(t, rng, 1500, -.08), draw(t, rng, 500, -.08))
		if !(x.Lo <= x.Difference && x.Difference <= x.Hi) {
			t.Fatalf("%+v", x)
		}
		if x.Significant() {
			miss++
		}
	}
	if miss > 5 { // 24 intervals: 6 of them or more have a chance of 1 in 1,000
		t.Errorf("%d of %d intervals miss, want about 5 %%", miss, trials)
	}
}

// TestChangeIsSeen: accuracy 10 points lower at the same confidences.
func TestChangeIsSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	ref, cur := draw(t, rng, 5000, 0), draw(t, rng, 3000, -.1)
	c := compare(t, ref, cur)
	for name, x := range map[string]struct {
		Change
		want float64
	}{"accuracy": {c.Accuracy, -.1}, "ece": {c.ECE, .1}, "smece": {smECE(t, ref, cur), .095}} {
		if !x.Significant() || math.Abs(x.Difference-x.want) > .03 {
			t.Errorf("%s: %+v, want a significant change of %v", name, x.Change, x.want)
		}
	}
	if !(c.NLL.Lo > 0) {
		t.Errorf("nll: %+v, want a rise", c.NLL)
	}
	if last := c.Curve[14]; !(last.PHolm < 1e-6 && last.Difference < -.05) {
		t.Errorf("last bin: %+v", last)
	}
	if first := c.Curve[0]; first.P != 1 || first.PHolm != 1 || !math.IsNaN(first.Difference) {
		t.Errorf("empty bin: %+v", first)
	}
}

// TestECENeedsNoEqualSizes: without the null expectation a small window looks worse than a large one.
func TestECENeedsNoEqualSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var debiased, plain float64
	const trials = 40
	for range trials {
		ref, cur := draw(t, rng, 20_000, 0), draw(t, rng, 300, 0)
		ref.Cells, cur.Cells = nil, nil
		debiased += compare(t, ref, cur).ECE.Difference / trials
		plain += (ece(cur) - ece(ref)) / trials
	}
	if math.Abs(debiased) > .012 || plain < .02 {
		t.Errorf("mean difference is %v debiased, %v plain; want near 0 and above .02", debiased, plain)
	}
}

func ece(w Window) (sum float64) {
	var n float64
	for _, b := range w.Bins {
		sum += math.Abs(b.SumA - b.SumC)
		n += b.W
	}
	return sum / n
}

func TestRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	w := draw(t, rng, 100, 0)
	for name, c := range map[string][2]Window{"no bins": {{}, {}}, "other bins": {w, {Bins: w.Bins[:10]}},
		"no rows": {w, {Bins: make([]metric.Bin, 15)}}} {
		if _, err := Compare(c[0], c[1]); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, want ErrInput", name, err)
		}
	}
	w = Window{Bins: w.Bins}
	for name, x := range map[string]Change{"nll": compare(t, w, w).NLL, "smece": smECE(t, w, w)} {
		if !math.IsNaN(x.Difference) || x.Significant() {
			t.Errorf("%s of what is not known: %+v", name, x)
		}
	}
}

// Significant reports whether the interval is without 0.
func (c Change) Significant() bool { return c.Lo > 0 || c.Hi < 0 }
