package metric

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// A block has about blockScores scores, so that they and the values derived from them stay in the second-level cache,
// and at most blockRows rows, so that rows of few scores stay in the first.
const (
	blockScores = 1 << 14
	blockRows   = 64
)

// block is the scratch of scanBlocks.
type block struct {
	Rows
	from   int // the number of the first row
	rows   []kernel.Row
	z, e   []float32 // the scores, and what Scale makes probabilities of
	likely logProduct

	// The rows of weight 1 of the block, and their class probabilities that are not small.
	unit  fixedpoint.ScaledRows
	large fixedpoint.Large

	exact    kernel.Exact // of row exactRow of the block, unless its Row is nil
	exactRow int
}

// scanBlocks is scanExact of float32 scores by the block kernel. All sums are of rows in their order or in fixed point,
// so that they don't depend on the blocks.
func scanBlocks(r Rows, o Options, rows bool) (*scanned, error) {
	s := newScanned(r, o, rows)
	step := max(16, min(blockRows, blockScores/r.K)&^15)
	b := &block{Rows: r, likely: logProduct{p: 1}}
	slab, out := make([]kernel.Row, step), make([]float32, step*r.K)
	b.unit = fixedpoint.ScaledRows{K: r.K, Rows: make([]int32, step), Scale: make([]float64, step)}
	for i := 0; i < len(r.Labels); i += step {
		n := min(step, len(r.Labels)-i)
		b.from, b.rows, b.z, b.e = i, slab[:n], r.F32[i*r.K:(i+n)*r.K], out[:n*r.K]
		if r.Probs {
			kernel.ProbRows(b.rows, b.z, r.K)
			b.e = b.z
		} else {
			kernel.LogitRows(b.rows, b.e, b.z, r.K, 1)
		}
		b.unit.V = b.e
		if err := b.addTo(s, &o); err != nil {
			return s, err
		}
	}
	s.nll -= b.likely.log()
	if r.W == nil {
		s.unitWeights()
	}
	return s, nil
}

// addTo adds the rows of the block. Where a probability lies beside the edge of a bin it is that of float64
// (kernel.Settle), and so is the bin. The accumulators of a stream have the same rule, and with it the same sums.
func (b *block) addTo(s *scanned, o *Options) error {
	b.exact.Row = nil
	if b.W == nil && s.classes.hasUnit() {
		if err := b.addUnit(s, o); err != nil {
			return err
		}
		s.classes.addUnit(b)
		return nil
	}
	t := &s.sums
	for j := range b.rows {
		y, w, ok, err := b.takes(b.from + j)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		row, z := &b.rows[j], b.z[j*b.K:(j+1)*b.K]
		if !row.OK {
			return b.rowError(j)
		}
		py := float64(b.e[j*b.K+y]) * row.Scale
		t.nll += w * kernel.NLL(*row, z, y, b.Probs)
		t.brier += w * kernel.Brier(*row, py)
		b.settle(j, o.Bins)
		right := isRight(row.Arg, y)
		t.n++
		t.total += w
		t.right += w * right
		addTop(s.top, row.Conf, right, w)
		if s.rows {
			s.keep(row, right == 1, w, o.CSF)
		}
		b.addClasses(s.classes, j, y, py, w)
	}
	return nil
}

func (b *block) rowError(j int) error {
	return rowError(b.from+j, b.z[j*b.K:(j+1)*b.K], b.Probs)
}

// addUnit is addTo of rows of weight 1, but for their class probabilities: it lists the rows that take part. At ten
// classes its steps are a third of the cost of a row.
func (b *block) addUnit(s *scanned, o *Options) error {
	nll, brier, likely, n := s.nll, s.brier, b.likely.p, 0
	rows, scale, hits, m := b.unit.Rows[:len(b.rows)], b.unit.Scale[:len(b.rows)], s.classes.unit.bins, o.Bins
	other, edges, cells := kernel.EdgeCells%m != 0, gridOf(kernel.EdgeCells), gridOf(m)
	for j, label := range b.Labels[b.from : b.from+len(b.rows)] {
		y, row := int(label), &b.rows[j]
		if uint(y) >= uint(b.K) {
			if _, _, _, err := b.takes(b.from + j); err != nil {
				return err
			}
			continue
		}
		if !row.OK {
			return b.rowError(j)
		}
		at := j*b.K + y
		if b.Probs {
			nll += row.LSE
			if likely *= positive(b.z[at]); likely < leastProduct {
				b.likely.take(likely)
				likely = 1
			}
		} else {
			nll += row.LogitNLL(float64(b.z[at]))
		}
		py := float64(b.e[at]) * row.Scale
		if v := row.SumP2 - float64(2*py) + 1; v > 0 { // as kernel.Brier
			brier += v
		}
		bin, _ := cells.find(row.Conf)
		if _, clear := edges.find(row.Conf); !clear || other {
			b.settle(j, m)
			bin = BinIndex(row.Conf, m)
		}
		top, right := &s.top[bin], isRight(row.Arg, y)
		top.N++
		top.SumC += row.Conf
		top.SumA += right
		if s.rows {
			s.keep(row, right == 1, 1, o.CSF)
		}
		bin, clear := cells.find(py)
		if !clear || py == 0 {
			if py = b.settled(j, y, py, m); py == 0 {
				bin = m // in none
			} else {
				bin = BinIndex(py, m)
			}
		}
		hits[y*(m+1)+bin].hits++
		rows[n], scale[n] = int32(j), row.Scale
		n++
	}
	s.n += int64(n)
	s.nll, s.brier, b.likely.p = nll, brier, likely
	b.unit.Rows, b.unit.Scale = rows[:n], scale[:n]
	return nil
}

// grid finds cells of equal width. Adding magic to x ≥ 0 leaves the integer part of x in the upper half of its bits,
// from magicBits on, and the fraction in the lower half.
type grid struct {
	m      float64
	lo, hi int64 // where p·m is taken to be at least and at most
	slack  uint32
}

const (
	magic     = 3 << 19
	magicBits = 0x4138000000000000
)

func gridOf(m int) grid {
	// The tolerance of the kernel is relative to the edge; this is that of the last edge.
	slack := int64(kernel.EdgeTolerance*float64(m)*(1<<32)) + 16
	return grid{m: float64(m), lo: magicBits + slack, hi: magicBits + int64(m)<<32 - slack - 1, slack: uint32(slack)}
}

// find returns the bin of p in [0, 1], and false if p may be beside the edge between two.
func (g grid) find(p float64) (bin int, clear bool) {
	t := min(max(int64(math.Float64bits(p*g.m+magic)), g.lo), g.hi)
	return int(t>>32 - magicBits>>32), uint32(t)+g.slack >= 2*g.slack
}

// unitWeights fills in what follows from every row having weight 1.
func (s *scanned) unitWeights() {
	s.total, s.right = float64(s.n), 0
	for i := range s.top {
		top := &s.top[i]
		top.W, top.W2 = float64(top.N), float64(top.N)
		s.right += top.SumA
	}
}

// settle settles row j at the edges that all accumulators have, and at those of m bins.
func (b *block) settle(j, m int) {
	row, z := &b.rows[j], b.z[j*b.K:(j+1)*b.K]
	row.Settle(z, b.Probs)
	if kernel.EdgeCells%m != 0 {
		row.SettleAt(m, z, b.Probs)
	}
}

// isRight is 1 or 0: a value, not a branch, which could not be predicted.
func isRight(arg, y int) float64 {
	right := 0
	if arg == y {
		right = 1
	}
	return float64(right)
}

func addTop(bins []Bin, conf, right, w float64) {
	b := &bins[BinIndex(conf, len(bins))]
	b.N++
	b.W += w
	b.W2 += w * w
	b.SumC += w * conf
	b.SumA += w * right
}

// addClasses adds row j to the class-wise bins one by one; py is the probability of the label.
func (b *block) addClasses(c *ClassWise, j, y int, py, w float64) {
	c.n++
	c.w += w
	if py == 0 || kernel.BesideEdge(py, c.m) {
		py = b.settled(j, y, py, c.m)
	}
	c.hit(y, py, w)
	b.addEach(c, j, w)
}

// addEach adds the probabilities of row j one by one.
func (b *block) addEach(c *ClassWise, j int, w float64) {
	scale := b.rows[j].Scale
	for k, v := range b.e[j*b.K : (j+1)*b.K] {
		p := float64(v) * scale
		if p == 0 || kernel.BesideEdge(p, c.m) {
			p = b.settled(j, k, p, c.m)
		}
		c.prob(k, p, w)
	}
}

// settled returns p, the probability of class k of row j, or beside the edges of m bins the one of float64. A
// probability that is 0 in float32 only belongs to the first bin, although it changes no sum.
func (b *block) settled(j, k int, p float64, m int) float64 {
	x := b.exactOf(j)
	if p == 0 && !b.Probs && !x.Row.Underflows(x.Scores[k]) {
		return math.SmallestNonzeroFloat64
	}
	return x.Beside(p, k, m)
}

func (b *block) exactOf(j int) *kernel.Exact {
	if b.exact.Row == nil || b.exactRow != j {
		b.exact, b.exactRow = kernel.Exact{Row: &b.rows[j], Scores: b.z[j*b.K : (j+1)*b.K], Probs: b.Probs}, j
	}
	return &b.exact
}

// logProduct sums logarithms of float32 probabilities by multiplying them: one logarithm for hundreds. A product is
// rounded by 2^-53 of it, its logarithm by 2^-53, as a sum of logarithms would be. Start with p = 1.
type logProduct struct{ p, sum float64 }

// leastProduct is where a product is taken: a float32 times it is not subnormal.
const leastProduct = 0x1p-800

func (l *logProduct) take(p float64) { l.sum += kernel.Log(p) }

func (l *logProduct) log() float64 { return l.sum + kernel.Log(l.p) }

// positive is q, or for 0 the smallest positive value, as in kernel.LogProb.
func positive(q float32) float64 {
	if q <= 0 {
		return math.SmallestNonzeroFloat32
	}
	return float64(q)
}
