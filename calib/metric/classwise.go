package metric

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// ClassWise holds the equal-width bins of every class's probability: m bins a class, over all rows.
type ClassWise struct {
	k, m int
	n    int64
	w    float64
	bins []Bin // k×m

	// Of the block path: its rows of weight 1, up to where a probability p is in the first bin for certain, and how far
	// p·m must be from integers for any bin to be certain.
	unit        classUnit
	edge, slack float64
}

// NewClassWise returns an empty one for k classes and m bins. It panics if either is below 1.
func NewClassWise(k, m int) *ClassWise {
	if k < 1 || m < 1 {
		panic("metric: class-wise bins need at least one class and one bin")
	}
	c := &ClassWise{k: k, m: m, bins: make([]Bin, k*m), edge: (1 - 2*kernel.EdgeTolerance) / float64(m)}
	c.slack = 2 * kernel.EdgeTolerance * float64(m)
	if m == 1 {
		c.slack = 1 // nothing is sure: all belongs to the first bin
	}
	return c
}

// AddWeighted adds a row of weight w ≥ 0: p are its k probabilities and y its label. A probability of exactly 0 is in
// no bin.
func (c *ClassWise) AddWeighted(p []float64, y int, w float64) {
	for k, pk := range p[:c.k] {
		c.prob(k, pk, w)
	}
	c.hit(y, p[y], w)
	c.n++
	c.w += w
}

// prob adds probability p of class k to its bin, without its outcome.
func (c *ClassWise) prob(k int, p, w float64) {
	if p > 0 {
		c.bins[k*c.m+BinIndex(p, c.m)].add(p, false, w)
	}
}

// hit adds the outcome of the label's class, whose probability is p.
func (c *ClassWise) hit(y int, p, w float64) {
	if p > 0 {
		c.bins[y*c.m+BinIndex(p, c.m)].SumA += w
	}
}

// ECE returns the class-wise calibration error, the mean over all K classes, whether they occur or not:
//
//	cwece = 1/K Σ_k Σ_b W_kb/W · |acc_kb - conf_kb|
//
// W is that of all rows. It shrinks like 1/K, since most probabilities are small: compare only at equal K.
// NaN where there is no row. Other code takes the mean over the classes present, which rises when one is missing.
// Reference: Kull et al., Beyond temperature scaling, NeurIPS 2019.
func (c *ClassWise) ECE() float64 {
	c.fold()
	var sum float64
	for _, b := range c.bins {
		sum += math.Abs(b.SumA - b.SumC)
	}
	return sum / c.w / float64(c.k)
}

// ECEL2 returns the L2 form, sqrt(1/K Σ_k Σ_b W_kb/W · (acc_kb - conf_kb)²); NaN where there is no row.
func (c *ClassWise) ECEL2() float64 {
	c.fold()
	var sum float64
	for _, b := range c.bins {
		if b.W > 0 {
			d := b.SumA - b.SumC
			sum += d * d / b.W
		}
	}
	return math.Sqrt(sum / c.w / float64(c.k))
}

// Bins returns the m bins of class k; SumA counts the rows labelled k.
func (c *ClassWise) Bins(k int) []Bin {
	c.fold()
	return c.bins[k*c.m : (k+1)*c.m]
}

// classUnit holds what the block path adds of rows of weight 1, with probabilities in multiples of 2^-32; fold puts it
// into the bins. Most probabilities are in the first bin, so that only their sum is kept: their number is what the
// others leave of the rows.
type classUnit struct {
	rows int64
	low  []int64   // by class, Σp of its first bin
	bins []unitBin // k×(m+1), the last of a class for p = 0; the first has hits only
}

type unitBin struct{ n, sum, hits int64 }

// maxUnitRows keeps sums below 2^63.
const maxUnitRows = 1 << 30

// hasUnit says whether rows of weight 1 can go to unit, and makes it.
func (c *ClassWise) hasUnit() bool {
	if c.unit.bins == nil {
		if int64(c.k)*int64(c.m+1) >= fixedpoint.NoKey {
			return false
		}
		c.unit.low, c.unit.bins = make([]int64, fixedpoint.Padded(c.k)), make([]unitBin, c.k*(c.m+1))
	}
	return true
}

// addUnit adds the probabilities of the rows of b.unit.
func (c *ClassWise) addUnit(b *block) {
	r, l, u := &b.unit, &b.large, &c.unit
	if len(r.Rows) == 0 {
		return
	}
	l.Reset()
	for at := 0; ; {
		if at = fixedpoint.AddScaledRows(u.low, l, r, at, c.edge); at == len(r.Rows) {
			break
		}
		b.addEach(c, int(r.Rows[at]), 1) // one with a -0
		c.n++
		c.w++
		r.Rows, r.Scale = slices.Delete(r.Rows, at, at+1), slices.Delete(r.Scale, at, at+1)
	}
	l.FindKeys(r, c.m, c.slack)
	row := 0
	for x, key := range l.Key {
		if key == fixedpoint.NoKey {
			for l.End[row] <= x {
				row++
			}
			b.addUnsure(c, row, x)
			continue
		}
		bin := &u.bins[key]
		bin.n++
		bin.sum += l.Sum[x]
	}
	for row, zero := range l.Zero {
		if j := int(r.Rows[row]); zero != 0 {
			b.exactOf(j).EachZero(b.e[j*b.K:(j+1)*b.K], func(k int) { u.bins[k*(c.m+1)+c.m].n++ })
		}
	}
	c.n += int64(len(r.Rows))
	c.w += float64(len(r.Rows))
	if u.rows += int64(len(r.Rows)); u.rows > maxUnitRows {
		c.fold()
	}
}

// addUnsure adds the x-th listed probability, of a row of the list: one that may be beside an edge.
func (b *block) addUnsure(c *ClassWise, row, x int) {
	k := int(b.large.Class[x])
	p := b.settled(int(b.unit.Rows[row]), k, float64(b.large.V[x])*b.unit.Scale[row], c.m)
	sum := fixedpoint.Round(min(p, 1))
	if i := BinIndex(p, c.m); i > 0 {
		bin := &c.unit.bins[k*(c.m+1)+i]
		bin.n++
		bin.sum += sum
	} else {
		c.unit.low[k] += sum
	}
}

// fold moves what the block path kept apart into the bins.
func (c *ClassWise) fold() {
	u := &c.unit
	for i := range u.bins {
		k, bin := i/(c.m+1), i%(c.m+1)
		v := &u.bins[i]
		if bin == c.m {
			c.bins[k*c.m].addUnit(-v.n, 0, 0)
		} else if bin > 0 {
			c.bins[k*c.m+bin].addUnit(v.n, v.sum, v.hits)
			c.bins[k*c.m].addUnit(-v.n, 0, 0)
		} else {
			c.bins[k*c.m].addUnit(u.rows, u.low[k], v.hits)
			u.low[k] = 0
		}
		*v = unitBin{}
	}
	u.rows = 0
}

func (b *Bin) addUnit(n, sum, hits int64) {
	b.N += n
	b.W += float64(n)
	b.W2 += float64(n)
	b.SumC += math.Ldexp(float64(sum), -fixedpoint.Bits)
	b.SumA += float64(hits)
}
