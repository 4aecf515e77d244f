package metric

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Bounds of resampling the labels row by row, which costs about 20 ns a row and resample.
const (
	rowDraws     = 2e7     // rows times resamples, from which there are fewer resamples
	minResamples = 100     // but not fewer than these
	maxRowDraws  = 1e8     // rows times those, from which bins are redrawn instead
	maxBinDraws  = 1 << 22 // non-empty bins times resamples: their memory
)

// classUncertainty returns the intervals of cwece and cwece_l2.
func classUncertainty(rows Rows, c *ClassWise, opt Options) (l1, l2 Interval, err error) {
	if !(c.w > 0) || opt.Resamples < 1 {
		return nanInterval, nanInterval, nil
	}
	c.fold()
	d := newClassDraws(c.bins, c.w, c.k)
	n, size := float64(c.n), float64(max(1, len(d.full)))
	r := min(float64(opt.Resamples), max(minResamples, math.Floor(min(rowDraws/n, maxBinDraws/size))))
	if n*r > maxRowDraws || r*size > 2*maxBinDraws {
		l1, l2 = d.intervals(opt.Resamples, opt.Seed)
		return l1, l2, nil
	}
	d.resamples = int(r)
	null, err := d.byRow(rows, rand.NewPCG(opt.Seed, 4), func(p float64, _ Bin) float64 { return p })
	if err != nil {
		return nanInterval, nanInterval, err
	}
	boot, err := d.byRow(rows, rand.NewPCG(opt.Seed, 5), func(_ float64, b Bin) float64 { return b.Acc() })
	if err != nil {
		return nanInterval, nanInterval, err
	}
	l1, l2 = d.read(null, boot)
	return l1, l2, nil
}

// classDraws redraws the hits of class-wise bins.
type classDraws struct {
	m, k      int     // bins a class, classes
	w         float64 // of all rows
	slot      []int32 // of each bin among the non-empty ones, or -1
	full      []Bin   // the non-empty ones
	resamples int
}

func newClassDraws(bins []Bin, w float64, k int) *classDraws {
	d := &classDraws{m: len(bins) / k, k: k, w: w, slot: make([]int32, len(bins))}
	for i, b := range bins {
		d.slot[i] = -1
		if b.W > 0 {
			d.slot[i] = int32(len(d.full))
			d.full = append(d.full, b)
		}
	}
	return d
}

func (d *classDraws) intervals(resamples int, seed uint64) (l1, l2 Interval) {
	d.resamples = resamples
	return d.read(d.byBin(rand.NewPCG(seed, 4), Bin.Conf), d.byBin(rand.NewPCG(seed, 5), Bin.Acc))
}

// read returns the intervals of resamples: L1 values, then as many L2 values.
func (d *classDraws) read(null, boot []float64) (l1, l2 Interval) {
	observed := d.finish(d.observed(), 1)
	n := d.resamples
	return newInterval(null[:n:n], boot[:n:n], observed[0]), newInterval(null[n:], boot[n:], observed[1])
}

func (d *classDraws) observed() []float64 {
	out := make([]float64, 2)
	for _, b := range d.full {
		g := b.SumA - b.SumC
		out[0] += math.Abs(g)
		out[1] += g * g / b.W
	}
	return out
}

// byRow redraws every label, class k with a probability in proportion to p(p_k, bin of p_k).
func (d *classDraws) byRow(rows Rows, rng *rand.PCG, p func(float64, Bin) float64) ([]float64, error) {
	size := len(d.full)
	hits := make([]float64, d.resamples*size)
	cum, at := make([]float64, 0, d.k), make([]int32, 0, d.k)
	err := rows.each(func(_ kernel.Row, probs []float64, _ int, w float64) {
		cum, at = cum[:0], at[:0]
		var sum float64
		for k, pk := range probs {
			if !(pk > 0) {
				continue
			}
			s := d.slot[k*d.m+BinIndex(pk, d.m)]
			if s < 0 { // beside an edge, in a bin that the block kernel left empty
				continue
			}
			if q := p(pk, d.full[s]); q > 0 {
				sum += q
				cum, at = append(cum, sum), append(at, s)
			}
		}
		if len(cum) == 0 {
			return
		}
		for r := range d.resamples {
			u := uniform(rng) * sum
			i := len(cum) - 1 // u < sum may fail by rounding
			if len(cum) > 16 {
				i = min(i, sort.SearchFloat64s(cum, u))
			} else {
				for j, v := range cum {
					if u < v {
						i = j
						break
					}
				}
			}
			hits[r*size+int(at[i])] += w
		}
	})
	if err != nil {
		return nil, err
	}
	out := make([]float64, 2*d.resamples)
	for r := range d.resamples {
		for i, b := range d.full {
			d.gap(out, r, b, hits[r*size+i])
		}
	}
	return d.finish(out, d.resamples), nil
}

// byBin redraws the hits of every bin by itself.
func (d *classDraws) byBin(rng *rand.PCG, p func(Bin) float64) []float64 {
	out := make([]float64, 2*d.resamples)
	for _, b := range d.full {
		dist, each := b.hits(p(b))
		for r := range d.resamples {
			d.gap(out, r, b, dist.draw(rng)*each)
		}
	}
	return d.finish(out, d.resamples)
}

func (d *classDraws) gap(out []float64, r int, b Bin, hits float64) {
	g := hits - b.SumC
	out[r] += math.Abs(g)
	out[d.resamples+r] += g * g / b.W
}

// finish turns the sums of n L1 and n L2 values into the metrics.
func (d *classDraws) finish(out []float64, n int) []float64 {
	for i := range out {
		if out[i] = out[i] / d.w / float64(d.k); i >= n { // in the order of ClassWise.ECE
			out[i] = math.Sqrt(out[i])
		}
	}
	return out
}
