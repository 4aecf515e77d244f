package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
	"github.com/plumbline/plumbline/calib/metric"
)

// MaxClasses bounds K.
const MaxClasses = 1 << 20

// Fields of a class-wise entry: rows, Σw, Σ w·p_k, and Σw of the rows whose label is the class.
const (
	cN = iota
	cW
	cWP
	cWA
)

const oneBits = 0x3FF0000000000000 // of 1.0

// ClassWise holds, for each of K classes, the M bins (i/M, (i+1)/M] of the class's probability.
//
// Most probabilities are in bin 0, so that bin has Σ w·p in a dense vector, and its count and Σw are what the others
// leave of the total; an exact zero is in no bin and kept apart, as pseudo-bin M. All else is a sparse table by
// (class, bin); for bin 0 it has the hits only. Make it with NewClassWise; the zero value only decodes.
type ClassWise struct {
	k, m  int
	n, w  int64
	dense []int64       // K, with room for whole vectors: Σ w·p of bin 0. Invariant: each is at most w.
	t     table[uint32] // key class·(M+1) + bin. Invariant: the N, W of one class add up to at most n, w; Σ WA = w.
	edges []float64     // M+1: i/M
	clear float64       // up to here a probability of the block kernel is in bin 0 for certain

	slack float64 // how far v·M must be from integers for its bin to be certain
}

// NewClassWise returns an empty accumulator of k classes, 2 to MaxClasses, and m bins, 1 to 3600, else ErrShape.
func NewClassWise(k, m int) (*ClassWise, error) {
	if err := checkClassWise(k, m); err != nil {
		return nil, err
	}
	c := &ClassWise{k: k, m: m, edges: make([]float64, m+1), clear: (1 - 2*kernel.EdgeTolerance) / float64(m)}
	c.dense = make([]int64, fixedpoint.Padded(k))[:k]
	c.t.space = k * (m + 1)
	c.slack = 2 * kernel.EdgeTolerance * float64(m)
	if m == 1 {
		c.slack = 1 // nothing is: all belongs to the first bin
	}
	for i := range c.edges {
		c.edges[i] = float64(i) / float64(m)
	}
	return c, nil
}

func checkClassWise(k, m int) error {
	if k < 2 || k > MaxClasses {
		return fmt.Errorf("classes is %d, allowed 2 to %d: %w", k, MaxClasses, ErrShape)
	}
	if m < 1 || m > maxBins { // with both bounds all keys fit in 32 bits
		return fmt.Errorf("class-wise bins is %d, allowed 1 to %d: %w", m, maxBins, ErrShape)
	}
	return nil
}

// Shape returns K and M.
func (c *ClassWise) Shape() (k, m int) { return c.k, c.m }

// Add adds a row of K probabilities p, label y and weight w.
func (c *ClassWise) Add(p []float64, y int, w float64) error {
	if err := checkProbs(p, c.k, y); err != nil {
		return err
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	wf := fix(w)
	if err := checkRoom(c.n, c.w, 1, wf); err != nil {
		return err
	}
	c.add(p, y, w, wf)
	return nil
}

func checkProbs(p []float64, k, y int) error {
	if len(p) != k {
		return fmt.Errorf("row of %d probabilities for %d classes: %w", len(p), k, ErrShape)
	}
	if y < 0 || y >= k {
		return fmt.Errorf("label is %d, allowed 0 to %d: %w", y, k-1, ErrValue)
	}
	// The bits of non-negative floats are in order, those of negative ones and NaN above.
	top := uint64(0)
	for _, v := range p {
		top = max(top, math.Float64bits(v))
	}
	if top <= oneBits {
		return nil
	}
	for i, v := range p { // which one? -0 is none
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("probability of class %d is %v, allowed 0 to 1: %w", i, v, ErrValue)
		}
	}
	return nil
}

func (c *ClassWise) add(p []float64, y int, w float64, wf int64) {
	edge, dense := c.edges[1], c.dense[:len(p)]
	fast := w < fixFast
	for k, v := range p {
		if v > edge || v == 0 {
			e := c.t.at(c.key(k, v))
			e[cN]++
			e[cW] += wf
			e[cWP] += fix(v * w)
		} else if fast {
			dense[k] += fixedpoint.Round(v * w)
		} else {
			dense[k] += fix(v * w)
		}
	}
	c.t.at(c.key(y, p[y]))[cWA] += wf
	c.n++
	c.w += wf
}

// key returns the table's key of probability v of class k.
func (c *ClassWise) key(k int, v float64) uint32 {
	base := uint32(k) * uint32(c.m+1)
	if v == 0 {
		return base + uint32(c.m)
	}
	i := int(v * float64(c.m)) // off by at most one; M for v = 1
	// Not a loop or a branch: of rows that are almost certain, v = 1 comes and goes.
	bin := i - 1
	if v > c.edges[i] {
		bin = i
	}
	if v > c.edges[bin+1] {
		bin++
	}
	return base + uint32(bin)
}

// bins returns the M bins of class k in integers.
func (c *ClassWise) bins(k int, dst []entry) []entry {
	dst = dst[:0]
	base := uint32(k) * uint32(c.m+1)
	zero := c.t.get(base + uint32(c.m))
	first := entry{c.n - zero[cN], c.w - zero[cW], c.dense[k], c.t.get(base)[cWA]}
	dst = append(dst, first)
	for i := 1; i < c.m; i++ {
		e := c.t.get(base + uint32(i))
		dst[0][cN] -= e[cN]
		dst[0][cW] -= e[cW]
		dst = append(dst, e)
	}
	return dst
}

// Bins returns the M bins of class k: SumC = Σ w·p_k, SumA = Σw of the rows of label k. It panics unless 0 <= k < K.
func (c *ClassWise) Bins(k int) []metric.Bin {
	if k < 0 || k >= c.k {
		panic("acc: class out of range")
	}
	out := make([]metric.Bin, c.m)
	for i, e := range c.bins(k, make([]entry, 0, c.m)) {
		out[i] = metric.Bin{N: e[cN], W: unfix(e[cW]), SumC: unfix(e[cWP]), SumA: unfix(e[cWA])}
	}
	return out
}

// ECE returns the class-wise calibration error, the mean over all K classes, present or not, and its L2 form:
//
//	cwece    = (1/K) Σ_k Σ_b |Σ_b w·(p_k - 1[y=k])| / W
//	cwece_l2 = sqrt((1/K) Σ_k Σ_b W_b/W · gap²),  gap = Σ_b w·(p_k - 1[y=k]) / W_b
//
// over the bins b of class k with W_b = Σw > 0, W the total. NaN without weight.
// Reference: Kull et al., Beyond temperature scaling, 2019 (the L2 form as in Kumar et al., 2019).
func (c *ClassWise) ECE() (cwece, cweceL2 float64) {
	if c.w == 0 {
		return math.NaN(), math.NaN()
	}
	w := float64(c.w)
	scratch := make([]entry, 0, c.m)
	for k := range c.k {
		var l1, l2 float64
		scratch = c.bins(k, scratch)
		for _, e := range scratch {
			if e[cW] <= 0 {
				continue
			}
			gap := float64(e[cWP] - e[cWA])
			l1 += math.Abs(gap)
			l2 += gap / w * (gap / float64(e[cW]))
		}
		cwece += l1 / w
		cweceL2 += l2
	}
	return cwece / float64(c.k), math.Sqrt(cweceL2 / float64(c.k))
}

// Chance returns how far the class-wise error can be off by chance: what ECE returns on average if every label comes
// with its row's probabilities, and the standard deviation of ECE. Both are bounds from above, by classes and bins:
//
//	null = (1/K) Σ_k Σ_b W_b/W · E|X/n_b − c_b|,            X ~ Binomial(n_b, c_b)
//	sd   = (1/K) Σ_k sqrt(Σ_b (W_b/W)² · a_b (1 − a_b)/n_b)
//
// with n_b rows, the mean probability c_b, and the share a_b of rows of the class, smoothed by one row of each kind.
// Rows of one bin are taken as equal, and classes as fully dependent, which two classes are. All weights count as
// equal. NaN without weight.
func (c *ClassWise) Chance() (null, sd float64) {
	if c.w == 0 {
		return math.NaN(), math.NaN()
	}
	w := float64(c.w)
	scratch := make([]entry, 0, c.m)
	for k := range c.k {
		var variance float64
		scratch = c.bins(k, scratch)
		for _, e := range scratch {
			if e[cW] <= 0 || e[cN] <= 0 {
				continue
			}
			n, share := float64(e[cN]), float64(e[cW])/w
			null += share * binomialDeviation(n, min(float64(e[cWP])/float64(e[cW]), 1)) / n
			a := (float64(e[cWA])/float64(e[cW])*n + 1) / (n + 2)
			variance += share * share * a * (1 - a) / n
		}
		sd += math.Sqrt(variance)
	}
	return null / float64(c.k), sd / float64(c.k)
}

// binomialDeviation returns E|X − np| of X ~ Binomial(n, p), by de Moivre's formula, in log space:
//
//	2 ν C(n, ν) p^ν (1 − p)^(n−ν+1),  ν = ⌊np⌋ + 1
//
// Reference: Diaconis, Zabell, Closed form summation for classical distributions, 1991.
func binomialDeviation(n, p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	v := math.Floor(n*p) + 1
	if v > n { // n·p rounds to n
		return 0
	}
	return 2 * math.Exp(math.Log(v)+logGamma(n+1)-logGamma(v+1)-logGamma(n-v+1)+v*math.Log(p)+
		(n-v+1)*math.Log1p(-p))
}

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// Merge adds the rows of o, which stays as it is. Another K or M is ErrShape.
func (c *ClassWise) Merge(o *ClassWise) error {
	if err := c.check(o); err != nil {
		return err
	}
	c.merge(o)
	return nil
}

func (c *ClassWise) check(o *ClassWise) error {
	if c.k != o.k || c.m != o.m {
		return fmt.Errorf("merge class-wise bins %d×%d into %d×%d: %w", o.k, o.m, c.k, c.m, ErrShape)
	}
	return checkRoom(c.n, c.w, o.n, o.w)
}

func (c *ClassWise) merge(o *ClassWise) {
	for k, v := range o.dense {
		c.dense[k] += v
	}
	n, w := o.n, o.w
	c.t.add(&o.t)
	c.n += n
	c.w += w
}

// Reset empties the accumulator and keeps its capacity.
func (c *ClassWise) Reset() {
	clear(c.dense)
	c.t.reset()
	c.n, c.w = 0, 0
}

// Clone returns a deep copy.
func (c *ClassWise) Clone() *ClassWise {
	d := *c
	d.dense = append(make([]int64, 0, cap(c.dense)), c.dense...)
	d.t = c.t.clone()
	return &d
}
