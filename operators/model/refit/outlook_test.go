package refit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// gainBlocks returns the gains of rows of weight 1 or 2 in blocks.
func gainBlocks(x, w []float64) (out []gainSum) {
	for i := 0; i < len(x); i += outlookBlock {
		var b gainSum
		for j := i; j < min(i+outlookBlock, len(x)); j++ {
			b.wx += w[j] * x[j]
			b.w += w[j]
		}
		out = append(out, b)
	}
	return out
}

// plainSpread computes spread from the rows: how far the sum of a run of rows is from its share.
func plainSpread(x, w []float64, run int) float64 {
	runs := len(x) / run
	x, w = x[len(x)-runs*run:], w[len(w)-runs*run:]
	var sum, weight, square float64
	for i := range x {
		sum, weight = sum+w[i]*x[i], weight+w[i]
	}
	for r := range runs {
		d := 0.0
		for i := r * run; i < (r+1)*run; i++ {
			d += w[i] * (x[i] - sum/weight)
		}
		square += d * d
	}
	return square * float64(runs) / float64(runs-1)
}

// TestLongRun: for independent rows the variance is the same for any number of rows. For rows in runs the long-run
// variance is the theoretical multiple of that of single rows, as far as there are runs of the longest length.
func TestLongRun(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 21))
	const n = 8000
	w, single, level := make([]float64, n), make([]float64, n), make([]float64, n)
	state := 0.0
	for i := range n {
		w[i] = float64(1 + i%2)
		single[i] = .5 * r.NormFloat64()
		state = .99*state + math.Sqrt(1-.99*.99)*.2*r.NormFloat64() // an autoregression that forgets within 100 rows
		level[i] = .3 + single[i] + state
	}
	for _, l := range []int{1, 3, 16} {
		got, _, _ := spread(gainBlocks(level, w), l)
		if want := plainSpread(level, w, l*outlookBlock); math.Abs(got-want) > 1e-9*want {
			t.Errorf("runs of %d blocks: spread %v, from the rows %v", l, got, want)
		}
	}
	one := make([]float64, n)
	for i := range one {
		one[i] = 1
	}
	if short, long := longRun([][]gainSum{gainBlocks(single, one)}); math.Abs(short-.25) > .06 || long > 1.4*short {
		t.Errorf("independent rows: variance %v, in the long run %v; want 0.25 and not much more", short, long)
	}
	// .25 + .04·(1 + .99)/(1 - .99) = 8.2 in the long run, 7.2 for the mean of 800 rows, the longest runs of which
	// there are enough.
	var short, long float64
	const draws = 40
	for range draws {
		for i := range n {
			state = .99*state + math.Sqrt(1-.99*.99)*.2*r.NormFloat64()
			level[i] = state + .5*r.NormFloat64()
		}
		s, l := longRun([][]gainSum{gainBlocks(level, one)})
		short, long = short+s/draws, long+l/draws
	}
	if short < 1.5 || short > 2.3 || long < 4 || long > 10 {
		t.Errorf("rows in runs: variance %v, in the long run %v; want 1.9 of blocks, and about 7", short, long)
	}
	// Two parts with different means are no run.
	jump := gainBlocks(single, one)
	for i := range jump[:80] {
		jump[i].wx += jump[i].w
	}
	if _, long := longRun([][]gainSum{jump[:80], jump[80:]}); long > .4 {
		t.Errorf("two parts: %v in the long run, want that of single rows, 0.25", long)
	}
	if _, long := longRun([][]gainSum{jump}); long < 4 {
		t.Errorf("a jump within a part: %v in the long run, want much more than that of single rows", long)
	}
	if short, long := longRun(nil); short != 0 || long != 0 {
		t.Errorf("nothing: %v, %v", short, long)
	}
}

// TestOutlook: the same gain on as many rows is sure to last if all rows are alike, and if they changed once. It is not
// if they come in runs of which some speak against it.
func TestOutlook(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.FreshRows = 500
	const run = 300
	alike, runs, changed := []float64{}, []float64{}, []float64{}
	for i := range 20 {
		alike = append(alike, 2.5)
		runs = append(runs, []float64{2.5, .4}[i%2])
		changed = append(changed, []float64{.4, 2.5}[i/10])
	}
	for _, c := range []struct {
		name      string
		sharpness []float64
		since     int // run
		lasts     bool
	}{{"all alike", alike, 0, true}, {"in runs", runs, 0, false}, {"changed", changed, 10,
		true}, {"changed, and not known to have", changed, 0, false}} {
		x := newFixture(t, cfg, 4)
		k := x.key
		var starts []int64
		end := batchtest.Start
		for i, x := range c.sharpness {
			starts = append(starts, end)
			rows := sample(batchtest.Rows(uint64(200+i), batchtest.Options{N: run, Sharpness: x, Start: end}))
			k.Sample = append(k.Sample, rows...)
			end = slices.MaxFunc(rows, func(a, b acc.SampleRow) int { return int(a.TS - b.TS) }).TS + 1
		}
		o, err := x.newOutlook()
		if err != nil {
			t.Fatal(err)
		}
		low, err := o.of(inForceAs(t, 1, 2.5, "").Cal, &sampleLosses{}, gained{.15, 1500, starts[c.since], nil})
		if err != nil || low > 0 != c.lasts {
			t.Errorf("%s: a gain of 0.15 is at least %v on the next rows, %v; want it to last: %v", c.name, low, err,
				c.lasts)
		}
	}
}

// TestSampleLosses: the losses cached from the previous pane equal those of scoring all rows again.
func TestSampleLosses(t *testing.T) {
	t.Parallel()
	k := &stage.Key{K: 4}
	cal, random, kept := inForceAs(t, 1, 2.5, "").Cal, rand.New(rand.NewPCG(9, 9)), sampleLosses{}
	for step := range 60 {
		for range random.IntN(3) {
			k.Keep(sample(batchtest.Rows(random.Uint64(), batchtest.Options{N: random.IntN(90), Sharpness: 1})), 150)
		}
		if step%20 == 19 {
			o := sample(batchtest.Rows(random.Uint64(), batchtest.Options{N: 30, Sharpness: 1}))
			k.Sample = append(k.Sample, o...)
			slices.Reverse(k.Sample)
			k.Added += int64(len(k.Sample)) // as absorb does
		}
		got, err := kept.of(k, cal, nllBound(k.K, 0))
		if err != nil {
			t.Fatal(err)
		}
		want, err := (&sampleLosses{}).of(k, cal, nllBound(k.K, 0))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("step %d: losses of %d rows differ from those of scoring all again (%d), %v", step, len(got),
				len(want), err)
		}
	}
}

// BenchmarkOutlook measures the cost of a candidate that waits for its outlook, at a pane of 100 sampled rows and with
// the default sample.
func BenchmarkOutlook(b *testing.B) {
	const rows = 8192
	for _, classes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("K=%d", classes), func(b *testing.B) {
			x := newFixture(b, testConfig(), classes)
			k := x.key
			k.Sample = sample(batchtest.Rows(1, batchtest.Options{N: rows, K: classes, Sharpness: 1}))
			cal, known := inForceAs(b, 1, 2.5, "").Cal, sampleLosses{}
			more := sample(batchtest.Rows(2, batchtest.Options{N: 100, K: classes, Sharpness: 1}))
			for b.Loop() {
				k.Keep(more, rows)
				o, err := x.newOutlook()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := o.of(cal, &known, gained{.1, rows, math.MinInt64, nil}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPartsByPrediction: a row whose label comes late belongs to its own side of a change, and moves no other.
func TestPartsByPrediction(t *testing.T) {
	t.Parallel()
	const rows, change, fresh = 2000, 1000, 100
	k := &stage.Key{K: 2}
	for i := range rows {
		k.Sample = append(k.Sample, acc.SampleRow{TS: int64(i), W: 1})
	}
	k.Sample = append(k.Sample, acc.SampleRow{TS: 5, W: 1})
	o := &outlook{key: k, fresh: fresh, was: make([]float64, rows+1)}
	var got []float64
	for _, part := range o.parts(make([]float64, rows+1), gained{since: change}) {
		w := 0.0
		for _, b := range part {
			w += b.w
		}
		got = append(got, w)
	}
	if want := []float64{change + 1 - fresh, rows - change}; !slices.Equal(got, want) {
		t.Errorf("parts have %v rows, want %v", got, want)
	}
}
