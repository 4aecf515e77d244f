package recipe

import (
	"math"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// scaling is how features x become ones of mean 0 and deviation 1 over the training rows, x′ = (x − mean)/sd. The
// recipes' rates are for features of about 1: with larger ones a step goes too far, with smaller ones no number of
// epochs arrives. A head is as good for the ones as for the others: where its first layer has weights w and biases b
// for x, it has w·sd and b + Σ w·mean for x′. Of each feature, D.
type scaling struct{ mean, sd []float64 }

// Features need no scaling while the root mean square of all is at least leastRMS and that of each at most mostRMS. One
// beyond wildest is a mistake, which a training should not hide.
const (
	leastRMS, mostRMS = 0.3, 10
	wildest           = 1e9
)

// scalingOf is nil where features are about 1 as they are.
func scalingOf(train, valid *data.Set) *scaling {
	if train.N() == 0 || train.D < 1 || valid.D != train.D {
		return nil
	}
	c := &scaling{mean: make([]float64, train.D), sd: make([]float64, train.D)}
	n := float64(train.N())
	eachRow(train, func(x []float32) {
		for j, v := range x {
			c.mean[j] += float64(v) / n
			c.sd[j] += float64(v) * float64(v) / n
		}
	})
	var sum, most float64
	for _, square := range c.sd {
		sum, most = sum+square, max(most, square)
	}
	if all := sum / float64(train.D); !(most < wildest*wildest) || all == 0 ||
		all >= leastRMS*leastRMS && most <= mostRMS*mostRMS {
		return nil
	}
	for j, square := range c.sd {
		// A feature that hardly varies beside its mean would lose its digits in the weights' float32.
		c.sd[j] = max(math.Sqrt(max(0, square-c.mean[j]*c.mean[j])), math.Abs(c.mean[j])/1000)
		if c.sd[j] == 0 {
			c.sd[j] = 1
		}
	}
	return c
}

// eachRow calls f with the features of each row.
func eachRow(s *data.Set, f func(x []float32)) {
	const rows = 256 // at a time
	var scratch []float32
	for from := 0; from < s.N(); from += rows {
		n := min(rows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		for i := range n {
			f(scratch[i*s.D : (i+1)*s.D])
		}
	}
}

// set is a view of rows with scaled features.
func (c *scaling) set(s *data.Set) *data.Set {
	out := *s
	out.Mean, out.SD = c.mean, c.sd
	return &out
}

// to changes a head for features as they are into one for scaled ones, in place.
func (c *scaling) to(h *head.Head) {
	c.first(h, func(w float64, j int) (weight, bias float64) { return w * c.sd[j], w * c.mean[j] })
}

// from is the reverse of to.
func (c *scaling) from(h *head.Head) {
	c.first(h, func(w float64, j int) (weight, bias float64) { return w / c.sd[j], -w / c.sd[j] * c.mean[j] })
}

// first changes each weight of the first layer, and adds what that takes to its bias.
func (c *scaling) first(h *head.Head, f func(w float64, j int) (weight, bias float64)) {
	l := h.Layers[0]
	for k := range l.Out {
		sum := float64(l.B[k])
		for j, w := range l.W[k*l.In : (k+1)*l.In] {
			weight, bias := f(float64(w), j)
			l.W[k*l.In+j] = float32(weight)
			sum += bias
		}
		l.B[k] = float32(sum)
	}
}
