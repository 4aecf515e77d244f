package refit

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Classes may come in runs: orders by customer, batch or day. Then the latest rows are of few classes, and what is
// better for these may be worse for the next run. So a first answer is fitted to rows of all classes, and whatever
// takes force must be likely to gain in the next run too.

// stratumRows is the least mean number of rows that each class gives to a fit. Where the classes are too many for it,
// some of them give their rows together: with a class each, the newest row of the rarest would be of long ago.
const stratumRows = 20

// newestOfClasses returns the places of n rows in the sample, ascending: the newest of each class, as many as its share
// of the sample. Where classes come in runs, the latest rows are of one class, and the temperature that suits them is
// wrong for the next run. Where classes come in no order, these are the latest rows but for chance.
func newestOfClasses(k *stage.Key, n int) []int {
	if n = min(n, len(k.Sample), max(trackedScores/k.K, 2*leastTracked)); n == 0 {
		return nil
	}
	left := make([]int, min(k.K, max(1, n/stratumRows)))
	of := func(j int) *int { return &left[int(k.Sample[j].Y)%len(left)] }
	for j := range k.Sample {
		*of(j)++
	}
	for i, rows := range left {
		left[i] = (rows*n + len(k.Sample) - 1) / len(k.Sample)
	}
	out := make([]int, 0, n+len(left))
	for j := len(k.Sample) - 1; j >= 0; j-- {
		if rows := of(j); *rows > 0 {
			*rows--
			out = append(out, j)
		}
	}
	slices.Reverse(out)
	return out
}

// rowsAt returns copies of the rows at these places in the sample.
func rowsAt(k *stage.Key, at []int) []acc.SampleRow {
	out := make([]acc.SampleRow, len(at))
	for i, j := range at {
		out[i] = k.Sample[j]
	}
	return out
}

// classGains are the gains of the rows of each class: their means, and the squares of the differences from these.
type classGains struct {
	mean, n []float64
	within  float64
}

func newClassGains(k int) *classGains {
	return &classGains{mean: make([]float64, k), n: make([]float64, k)}
}

func (g *classGains) add(y int32, gain float64) {
	g.n[y]++
	d := gain - g.mean[y]
	g.mean[y] += d / g.n[y]
	g.within += d * (gain - g.mean[y])
}

// means returns the mean gain of each class, shrunk towards that of all rows: with many classes a class has a row or
// two, and their gains differ by chance. The mean of n rows has the variance σ²/n, σ² pooled over the classes. A class
// without rows has the mean of all.
func (g *classGains) means() []float64 {
	var rows, classes, sum float64
	for y, n := range g.n {
		if n > 0 {
			rows, classes, sum = rows+n, classes+1, sum+n*g.mean[y]
		}
	}
	out := make([]float64, len(g.mean))
	if rows == 0 {
		return out
	}
	mean, variance := sum/rows, math.Inf(1) // a row a class tells of no class
	if rows > classes {
		variance = max(g.within/(rows-classes), sameGain*sameGain)
	}
	var r, v []float64 // effects about 1
	for y, n := range g.n {
		if n > 0 {
			r, v = append(r, 1+g.mean[y]-mean), append(v, variance/n)
		}
	}
	shift.Shrink(r, v, shift.PauleMandel(r, v))
	for y, n := range g.n {
		if out[y] = mean; n > 0 {
			out[y] += r[0] - 1
			r = r[1:]
		}
	}
	return out
}

// weighsClasses reports whether a calibrator has weights of classes. It answers shares that moved, so it gains on some
// classes what it loses on others, and so does what takes it back: neither waits for runs to end.
func weighsClasses(cal calibrator.Calibrator) bool {
	_, ok := cal.(*calibrator.ClassWeights)
	return ok
}

// gainsByClass returns the mean gain of a calibrator over that in force on the rows of each class.
func gainsByClass(p *publisher, cal calibrator.Calibrator, rows []acc.SampleRow) ([]float64, error) {
	gains := newClassGains(p.version.K)
	err := p.pairOf(cal).each(rows, func(row *acc.SampleRow, was, now stage.RowScore) {
		gains.add(row.Y, was.NLL-now.NLL)
	})
	return gains.means(), err
}

// sameGain is the difference of gains, in nats, that is but rounding.
const sameGain = 1e-6

// leastDependence is the variance in the long run, over that of single rows, from which classes come in runs.
const leastDependence = 4

// longestRuns is longRun of one part, and whether the variance still grows with the length of the runs.
func longestRuns(blocks []gainSum) (long float64, growing bool) {
	was := 0.0
	for l := 1; ; l *= 2 {
		square, weight, n := spread(blocks, l)
		if n < leastRuns {
			return long, growing
		}
		x := square / weight
		long, growing, was = max(long, x), l > 1 && x > 1.5*was, x
	}
}

// worstRuns returns a lower bound of the mean gain on the next rows, if only their classes were uncertain: each row of
// the sample has the mean gain of its class. Where classes come in runs, the next run may be of a class that loses what
// the others gain. It is +Inf where they do not come in runs, or all gain the same.
func worstRuns(rows []acc.SampleRow, gains []float64, next int) float64 {
	var blocks []gainSum
	mean, square, n := 0.0, 0.0, float64(len(rows))
	for i := range rows {
		if i%outlookBlock == 0 {
			blocks = append(blocks, gainSum{})
		}
		x, b := gains[rows[i].Y], &blocks[len(blocks)-1]
		b.wx, b.w = b.wx+x, b.w+1
		mean, square = mean+x/n, square+x*x/n
	}
	variance := square - mean*mean
	long, growing := longestRuns(blocks)
	switch {
	case variance < sameGain*sameGain || long < leastDependence*variance:
		return math.Inf(1)
	case growing:
		long = math.Inf(1) // no run has ended that tells how long they are
	}
	return mean - outlookZ*math.Sqrt(variance*min(1, (long/variance-1)/float64(next)))
}
