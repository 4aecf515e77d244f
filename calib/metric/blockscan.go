package metric

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// A block has about blockScores scores, so that they and what is made of them stay in the second-level cache, and at
// most blockRows rows, for the same reason.
const (
	blockScores = 1 << 14
	blockRows   = 256
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
	for i := 0; i < len(r.Labels); i += step {
		n := min(step, len(r.Labels)-i)
		b.from, b.rows, b.z, b.e = i, slab[:n], r.F32[i*r.K:(i+n)*r.K], out[:n*r.K]
		if r.Probs {
			kernel.ProbRows(b.rows, b.z, r.K)
			b.e = b.z
		} else {
			kernel.LogitRows(b.rows, b.e, b.z, r.K, 1)
		}
		if err := b.addTo(s, &o); err != nil {
			return s, err
		}
	}
	s.nll -= b.likely.log()
	return s, nil
}

// addTo adds the rows of the block. Where a probability lies beside the edge of a bin it is that of float64
// (kernel.Settle), and so is the bin. The accumulators of a stream have the same rule, and with it the same sums.
func (b *block) addTo(s *scanned, o *Options) error {
	b.unit.V, b.unit.K, b.unit.Rows, b.unit.Scale = b.e, b.K, b.unit.Rows[:0], b.unit.Scale[:0]
	b.exact.Row = nil
	t, likely, other := s.sums, b.likely, kernel.EdgeCells%o.Bins != 0
	for j, label := range b.Labels[b.from : b.from+len(b.rows)] {
		y, w := int(label), weight(b.W, b.from+j)
		if uint(y) >= uint(b.K) || w == 0 {
			if _, _, _, err := b.takes(b.from + j); err != nil {
				return err
			}
			continue
		}
		row, z := &b.rows[j], b.z[j*b.K:(j+1)*b.K]
		if !row.OK {
			return rowError(b.from+j, b.Probs)
		}
		py := float64(b.e[j*b.K+y]) * row.Scale
		switch {
		case !b.Probs:
			t.nll += w * (row.LSE - float64(z[y]))
		case w == 1:
			t.nll += row.LSE
			likely.times(z[y])
		default:
			t.nll += w * kernel.NLL(*row, z, y, true)
		}
		if brier := row.SumP2 - float64(2*py) + 1; brier > 0 { // as kernel.Brier
			t.brier += w * brier
		}
		if kernel.BesideEdge(row.Conf, kernel.EdgeCells) || other && kernel.BesideEdge(row.Conf, o.Bins) {
			row.Settle(z, b.Probs)
			row.SettleAt(o.Bins, z, b.Probs)
		}
		right := isRight(row.Arg, y)
		t.n++
		t.total += w
		t.right += w * right
		addTop(s.top, row.Conf, right, w)
		if s.rows {
			s.keep(row, right == 1, w, o.CSF, b.K)
		}
		b.addClasses(s.classes, j, y, py, w)
	}
	s.sums, b.likely = t, likely
	s.classes.addUnit(b)
	return nil
}

// isRight is 1 or 0: a value, not a branch that nobody can predict.
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

// addClasses adds the outcome of row j to the class-wise bins; its probabilities too, or where it has weight 1 it puts
// the row on the list of addUnit. py is the probability of the label.
func (b *block) addClasses(c *ClassWise, j, y int, py, w float64) {
	c.n++
	c.w += w
	bin, sure := c.clearBin(py)
	if !sure {
		py = b.settled(j, y, py, c.m)
		bin = BinIndex(py, c.m)
	}
	if w != 1 || !c.hasUnit() {
		if py > 0 {
			c.bins[y*c.m+bin].SumA += w
		}
		b.addEach(c, j, w)
		return
	}
	b.unit.Rows, b.unit.Scale = append(b.unit.Rows, int32(j)), append(b.unit.Scale, b.rows[j].Scale)
	if py > 0 {
		c.unit.bins[y*(c.m+1)+bin].hits++
	}
}

// addEach adds the probabilities of row j one by one.
func (b *block) addEach(c *ClassWise, j int, w float64) {
	scale := b.rows[j].Scale
	for k, v := range b.e[j*b.K : (j+1)*b.K] {
		p := float64(v) * scale
		if bin, sure := c.clearBin(p); sure {
			c.bins[k*c.m+bin].add(p, false, w)
		} else {
			c.prob(k, b.settled(j, k, p, c.m), w)
		}
	}
}

// settled returns p, the probability of class k of row j, but that of float64 beside the edges of m bins. 0 in float32
// is not 0 unless it is so in float64: then it belongs to the first bin, though nobody sees it in a sum.
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

func (l *logProduct) times(q float32) {
	x := float64(q)
	if x <= 0 {
		x = math.SmallestNonzeroFloat32 // as kernel.LogProb
	}
	if l.p *= x; l.p < 0x1p-800 {
		l.sum += kernel.Log(l.p)
		l.p = 1
	}
}

func (l *logProduct) log() float64 { return l.sum + kernel.Log(l.p) }
