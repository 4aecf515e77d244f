package drift

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// shiftBench is a labelled sample with a calibrator fitted on it, and further rows by label, some to draw from and some
// to score.
type shiftBench struct {
	k          *stage.Key
	base       calibrator.Calibrator
	draw, test [][][]float64 // logits by label
	said       []float64     // predictions of the sample
}

// realShiftBench uses a third of the rows for each.
func realShiftBench(t *testing.T) *shiftBench {
	z, y := realdata.Scores(t, "c100_chenyaofo_logits.npz", "resnet56", "test_labels")
	k := len(z) / len(y)
	b := &shiftBench{k: newKey(k), draw: make([][][]float64, k), test: make([][][]float64, k)}
	var fz []float32
	var fy []int32
	for i, label := range y {
		row := z[i*k : (i+1)*k]
		wide := make([]float64, k)
		for j, x := range row {
			wide[j] = float64(x)
		}
		switch i % 3 {
		case 0:
			b.k.Sample = append(b.k.Sample, acc.SampleRow{W: 1, Y: label, Z: row})
			fz, fy = append(fz, row...), append(fy, label)
		case 1:
			b.draw[label] = append(b.draw[label], wide)
		default:
			b.test[label] = append(b.test[label], wide)
		}
	}
	var err error
	rows := calibrator.NewData(fz, k, fy, nil)
	if b.base, _, err = calibrator.Fit("temperature", rows, calibrator.Options{}); err != nil {
		t.Fatal(err)
	}
	b.said = predictedSample(b.k)
	return b
}

// now draws m predictions with class shares q, without repeats if there are enough rows.
func (b *shiftBench) now(t *testing.T, rng *rand.Rand, m int, q []float64) *acc.ClassCounts {
	c, err := acc.NewClassCounts(b.k.K)
	if err != nil {
		t.Fatal(err)
	}
	used, p := make([]int, b.k.K), make([]float64, b.k.K)
	for _, rows := range b.draw {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	for range m {
		u, j := rng.Float64(), 0
		for ; j < b.k.K-1 && u >= q[j]; j++ {
			u -= q[j]
		}
		r, _ := kernel.Logits(b.draw[j][used[j]%len(b.draw[j])], p)
		used[j]++
		if err := c.Predict(r.Arg, r.Conf, 1); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// nll returns the NLL of the rows to score, weighted as if their class shares were q.
func (b *shiftBench) nll(cal calibrator.Calibrator, q []float64) (sum float64) {
	p := make([]float64, b.k.K)
	for j, rows := range b.test {
		for _, z := range rows {
			cal.Apply(p, z)
			sum -= q[j] / float64(len(rows)) * math.Log(max(p[j], math.SmallestNonzeroFloat64))
		}
	}
	return sum
}

// corrected returns the base with weights from a pool of the given number of classes.
func (b *shiftBench) corrected(t *testing.T, now *acc.ClassCounts, classes int) calibrator.Calibrator {
	t.Helper()
	after := predictedNow(now)
	s, err := newSoftJoint(b.k, b.base, shift.NewPoolOf(shift.Contrast(b.said, after), classes))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.correct(now, shift.RatioVariance(b.said, after))
	if err != nil {
		t.Fatal(err)
	}
	cal, err := calibrator.NewClassWeights(b.base, s.weights(c.Weights, b.k.K))
	if err != nil {
		t.Fatal(err)
	}
	return cal
}

// proposed returns the weights that the stream would propose at level .01, or nil.
func (b *shiftBench) proposed(t *testing.T, now *acc.ClassCounts) *calibrator.ClassWeights {
	t.Helper()
	b.k.Version.Calibrators = []*stage.InForce{{Revision: 1, Cal: b.base}}
	d := classDrift{k: b.k.K}
	c, why := d.propose(b.k, now, .01)
	if c == nil {
		t.Logf("nothing is proposed: %s", why)
		return nil
	}
	return c.cal
}

// fewMoved multiplies the shares of some classes by six.
func fewMoved(rng *rand.Rand, k, some int) []float64 {
	q := slices.Repeat([]float64{1}, k)
	for _, j := range rng.Perm(k)[:some] {
		q[j] = 6
	}
	return batchtest.Normalise(q)
}

// allMoved draws class shares of which many are small.
func allMoved(rng *rand.Rand, k int) []float64 {
	q := make([]float64, k)
	for j := range q {
		u := rng.Float64()
		q[j] = u * u * rng.ExpFloat64()
	}
	return batchtest.Normalise(q)
}

// TestRealPooledCorrection: on CIFAR-100, weights from few predictions help if shares have moved, also with pools of
// far fewer classes. If shares have not moved, the weights change almost nothing, and none are proposed.
func TestRealPooledCorrection(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	b := realShiftBench(t)
	draws := testsize.Pick(1, 3)
	even := slices.Repeat([]float64{1}, b.k.K)
	for _, m := range []int{500, 1000} {
		for _, c := range []struct {
			what   string
			shares func(rng *rand.Rand) []float64
			most   float64 // largest change of NLL, on average
		}{
			{"as it was", func(*rand.Rand) []float64 { return batchtest.Normalise(slices.Clone(even)) }, .003},
			{"few moved", func(rng *rand.Rand) []float64 { return fewMoved(rng, b.k.K, 8) }, -.02},
			{"all moved", func(rng *rand.Rand) []float64 { return allMoved(rng, b.k.K) }, -.1},
		} {
			was, by := 0., map[int]float64{}
			for draw := range uint64(draws) {
				rng := rand.New(rand.NewPCG(draw, 4))
				q := c.shares(rng)
				now := b.now(t, rng, m, q)
				without := b.nll(b.base, q)
				was += without / float64(draws)
				for _, classes := range []int{16, 64, 100} {
					by[classes] += (b.nll(b.corrected(t, now, classes), q) - without) / float64(draws)
				}
				if proposed := b.proposed(t, now) != nil; proposed != (c.most < 0) {
					t.Errorf("%d rows, %s, draw %d: a correction is proposed: %v", m, c.what, draw, proposed)
				}
			}
			t.Logf("%d predictions, %s: NLL %.4f changes by %+.4f, %+.4f, %+.4f with pools of 16, 64, 100 classes",
				m, c.what, was, by[16], by[64], by[100])
			for classes, d := range by {
				if d > c.most {
					t.Errorf("%d predictions, %s, %d classes: NLL changes by %v, allowed %v", m, c.what, classes, d,
						c.most)
				}
			}
		}
	}
}

// manyShiftBench has k classes. The model sees the right class or one of the four after it, with exact posteriors.
func manyShiftBench(k, sample, draw, test int) *shiftBench {
	even := batchtest.Normalise(slices.Repeat([]float64{1}, k))
	b := &shiftBench{k: newKey(k), base: calibrator.Identity{}, draw: make([][][]float64, k),
		test: make([][][]float64, k)}
	for _, r := range batchtest.ManyClasses(3, nil, sample, even, even) {
		b.k.Sample = append(b.k.Sample, acc.SampleRow{W: 1, Y: r.Label, Z: r.Scores})
	}
	one := make([]float64, k)
	for y := range k {
		clear(one)
		one[y] = 1
		for i, r := range batchtest.ManyClasses(uint64(10+y), nil, draw+test, even, one) {
			z := make([]float64, k)
			for j, x := range r.Scores {
				z[j] = float64(x)
			}
			if i < draw {
				b.draw[y] = append(b.draw[y], z)
			} else {
				b.test[y] = append(b.test[y], z)
			}
		}
	}
	b.said = predictedSample(b.k)
	return b
}

// TestCorrectionOfAThousandClasses: if shares of 1,000 classes have moved, 2,000 predictions help. If none has moved,
// nothing is proposed. With five sampled rows and two predictions a class, and 128 separate classes, most of the gain
// of the true shares is out of reach.
func TestCorrectionOfAThousandClasses(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const k, m = 1000, 2000
	b := manyShiftBench(k, 5000, 5, 3)
	rng := rand.New(rand.NewPCG(1, 4))
	if b.proposed(t, b.now(t, rng, m, batchtest.Normalise(slices.Repeat([]float64{1}, k)))) != nil {
		t.Error("a correction of shares that have not moved")
	}
	for i, q := range [][]float64{fewMoved(rng, k, 40), allMoved(rng, k)} {
		what := []string{"40 classes come six times as often", "all moved"}[i]
		cal := b.proposed(t, b.now(t, rng, m, q))
		if cal == nil {
			t.Errorf("%s: no correction", what)
			continue
		}
		oracle := slices.Clone(q)
		for j := range oracle {
			oracle[j] = max(q[j]*k, 1./weightBound)
		}
		best, err := calibrator.NewClassWeights(b.base, oracle)
		if err != nil {
			t.Fatal(err)
		}
		without := b.nll(b.base, q)
		gain, possible := without-b.nll(cal, q), without-b.nll(best, q)
		t.Logf("%s: NLL %.4f changes by %+.4f, with the true shares by %+.4f", what, without, -gain, -possible)
		if gain < possible/8 {
			t.Errorf("%s: NLL falls by %v, with the true shares by %v", what, gain, possible)
		}
		if w := cal.Weights(); len(w) != k || slices.ContainsFunc(w,
			func(x float64) bool { return !(x >= calibrator.MinClassWeight && x <= calibrator.MaxClassWeight) }) {
			t.Errorf("%s: weights %v", what, w)
		}
	}
}
