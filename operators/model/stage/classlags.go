package stage

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
)

// Labels of one class that come later than others make rows of that class seem wrong at first, and other rows right.
// Over all classes the lags of wrong and right rows may then be alike, so that sooner sees nothing.

// classLags is the class whose labels' lags differ most from those of other labels, and the difference from those of
// rows like them.
type classLags struct {
	class int
	difference
}

// lagsOfClass finds it by the ranks of lags among rows of about the same time, and tests that class as sooner does,
// with the margin of the class over the best other one: sure rows of the class may have labels at other times than
// others. It changes the margins and hits of rows, which are the sample as lags has it.
func lagsOfClass(rows []lagged, sample []acc.SampleRow, k int) classLags {
	off, variance, of := make([]float64, k), make([]float64, k), make([]float64, k)
	var room [lagTime]uint64
	for near := range slices.Chunk(rows, lagTime) {
		at := room[:len(near)]
		ordered(at, func(i int) int64 { return near[i].lag })
		clear(of)
		n := float64(len(near))
		for from := 0; from < len(near); {
			to := from + 1
			for to < len(near) && near[at[to]].lag == near[at[from]].lag {
				to++
			}
			for _, i := range at[from:to] {
				y := sample[near[i].place].Y
				of[y]++
				off[y] += (float64(from+to) - n) / 2 // the mean rank of these less that of all
			}
			from = to
		}
		for c, m := range of {
			variance[c] += m * (n - m) * (n + 1) / 12
		}
	}
	best, most := 0, 0.0
	for c := range off {
		if z := math.Abs(off[c]); z > most*math.Sqrt(variance[c]) {
			best, most = c, z/math.Sqrt(variance[c])
		}
	}
	if most <= soonerZ {
		return classLags{}
	}
	ofClass(rows, sample, best)
	return classLags{best, sooner(rows)}
}

// ofClass gives rows the margin of a class over the others, and makes those with a label of the class the wrong ones.
func ofClass(rows []lagged, sample []acc.SampleRow, class int) {
	for i := range rows {
		row := &sample[rows[i].place]
		other := float32(math.Inf(-1))
		for c, z := range row.Z {
			if c != class {
				other = max(other, z)
			}
		}
		rows[i].margin, rows[i].hit = row.Z[class]-other, int(row.Y) != class
	}
}

// classDelays is as outcomeDelays of the class whose labels come sooner, or later.
func (k *Key) classDelays() (string, int64) {
	c := k.lagging().class
	side := c.beyond(soonerZ)
	if math.Abs(side) < soonerBias {
		return "", 0
	}
	rows := lags(k.Sample)
	ofClass(rows, k.Sample, c.class)
	comes := "later"
	if side < 0 {
		comes = "sooner"
	}
	return fmt.Sprintf("labels of class %d came %s than others of rows like them (median %s, others %s)", c.class,
		comes, medianLag(rows, false), medianLag(rows, true)), int64(quantileOfLags(rows, side < 0, slowShare))
}
