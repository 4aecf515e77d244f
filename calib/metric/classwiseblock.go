package metric

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

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
