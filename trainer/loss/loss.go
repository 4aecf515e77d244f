package loss

import (
	"fmt"
	"math"
)

// Batch says what goes with a batch of logits.
type Batch struct {
	// N and K are the numbers of rows and classes, N ≥ 1 and K ≥ 2.
	N, K int
	// Y has the N labels, each in [0, K).
	Y []int32
	// Correct is the share of earlier epochs in which each row was classified correctly, in [0, 1]; only crl reads it.
	// Where it is nil, crl takes the batch's own hits.
	Correct []float64
	// CDF has the counts of the CSF in equal bins on [0, 1], those of a stream; only au reads it. Where it is nil, au
	// counts the batch.
	CDF []float64
}

// term is one summand of a loss.
type term interface {
	// add returns the value and, if grad (n×K) is not nil, adds scale times the gradient to it.
	add(r *rows, scale float64, grad []float64) float64
}

// rowLoss is a loss that is a mean over rows.
type rowLoss interface {
	// row returns the loss of row i and, if g is not nil, adds w times its gradient to g.
	row(r *rows, i int, w float64, g []float64) float64
}

// meanOf is the term 1/n Σ_i loss_i.
type meanOf struct{ rowLoss }

func (m meanOf) add(r *rows, scale float64, grad []float64) float64 {
	var sum float64
	w := scale / float64(r.n)
	for i := range r.n {
		sum += m.row(r, i, w, r.part(grad, i))
	}
	return sum / float64(r.n)
}

type weighted struct {
	weight float64
	term   term
}

// Loss is a sum of weighted terms: primary + β·secondary + …. It keeps its workspace, so a batch costs no allocation
// once one of its size has been seen, and it is not safe for concurrent use.
type Loss struct {
	text  string
	terms []weighted
	parts []float64
	rows  rows // of the batch, or of a block of it
	grad  []float64
	top   []int32
}

// Name is the loss as text that [Parse] takes, with every option that was set.
func (l *Loss) Name() string { return l.text }

// Top has the top class of each row at the last evaluation, the lowest of ties; valid until the next.
func (l *Loss) Top() []int32 { return l.top }

// Eval returns the loss of the n×K logits z and, if grad is not nil, overwrites it with the n×K gradient.
// An error names the row: a logit that is not finite, a label out of range; grad is then undefined.
func (l *Loss) Eval(z []float64, b Batch, grad []float64) (float64, error) {
	return evaluate(l, z, b, grad)
}

// Eval32 is [Loss.Eval] of float32 logits: computed in float64, the gradient rounded once.
func (l *Loss) Eval32(z []float32, b Batch, grad []float32) (float64, error) {
	return evaluate(l, z, b, grad)
}

// evaluate takes rows by blocks where every term is a mean over rows, or detached au is all, so that what is between
// logits and gradient stays in a cache; else all at once. All give the same bits.
func evaluate[T float32 | float64](l *Loss, z []T, b Batch, grad []T) (float64, error) {
	if err := check(z, b, grad); err != nil {
		return 0, err
	}
	l.top = grow(l.top, b.N)
	if l.byRows() {
		return evalBlocks(l, z, b, grad)
	}
	if a := l.detached(); a != nil {
		return evalDetached(l, a, z, b, grad)
	}
	l.rows.resize(b)
	if err := load(&l.rows, z, 0); err != nil {
		return 0, err
	}
	copy(l.top, l.rows.top)
	sums := l.space(grad != nil, b.N*b.K)
	var v float64
	for i, t := range l.terms {
		l.parts[i] = t.term.add(&l.rows, t.weight, sums)
		v += t.weight * l.parts[i]
	}
	round(grad, sums)
	return v, nil
}

// byRows says whether every term is a mean over rows.
func (l *Loss) byRows() bool {
	for _, t := range l.terms {
		if _, ok := t.term.(meanOf); !ok {
			return false
		}
	}
	return true
}

func evalBlocks[T float32 | float64](l *Loss, z []T, b Batch, grad []T) (float64, error) {
	n, size := float64(b.N), blockRows(b.K)
	clear(l.parts)
	for from := 0; from < b.N; from += size {
		to := min(from+size, b.N)
		l.rows.resize(Batch{N: to - from, K: b.K, Y: b.Y[from:to]})
		var g []T
		if grad != nil {
			g = grad[from*b.K : to*b.K]
		}
		if err := evalBlock(l, z[from*b.K:to*b.K], g, n, from); err != nil {
			return 0, err
		}
		copy(l.top[from:], l.rows.top)
	}
	var v float64
	for j, t := range l.terms {
		l.parts[j] /= n
		v += t.weight * l.parts[j]
	}
	return v, nil
}

// evalBlock adds the rows of a block, the first of which is row first of n, to the parts and writes their gradient.
func evalBlock[T float32 | float64](l *Loss, z, grad []T, n float64, first int) error {
	r := &l.rows
	if l.terms[0].term == (meanOf{crossEntropy{}}) && len(l.terms) == 1 {
		if err := exponentials(r, z, 0, r.n, first); err != nil {
			return err
		}
		for i := range r.n {
			var g []T
			if grad != nil {
				g = grad[i*r.k : (i+1)*r.k]
			}
			l.parts[0] += crossRow(r, i, l.terms[0].weight/n, g)
		}
		return nil
	}
	if err := load(r, z, first); err != nil {
		return err
	}
	sums := l.space(grad != nil, r.n*r.k)
	for j, t := range l.terms {
		of, w := t.term.(meanOf), t.weight/n
		for i := range r.n {
			l.parts[j] += of.row(r, i, w, r.part(sums, i))
		}
	}
	round(grad, sums)
	return nil
}

// space is room for a gradient of so many values, all 0; nil where none is wanted.
func (l *Loss) space(wanted bool, values int) []float64 {
	if !wanted {
		return nil
	}
	l.grad = grow(l.grad, values)
	clear(l.grad)
	return l.grad
}

// round writes float64 values as T; from may be nil, and then to is.
func round[T float32 | float64](to []T, from []float64) {
	to = to[:len(from)]
	for i, v := range from {
		to[i] = T(v)
	}
}

// check looks at all but the logits.
func check[T float32 | float64](z []T, b Batch, grad []T) error {
	if len(z) != b.N*b.K || len(b.Y) != b.N {
		panic("loss: len(z) != n*K or len(y) != n")
	}
	if b.N < 1 || b.K < 2 {
		return fmt.Errorf("loss: batch of %d rows and %d classes, allowed at least 1 and 2", b.N, b.K)
	}
	if grad != nil && len(grad) != b.N*b.K {
		panic("loss: len(grad) != n*K")
	}
	if b.Correct != nil && len(b.Correct) != b.N {
		panic("loss: len(correct) != n")
	}
	for i, y := range b.Y {
		if y < 0 || int(y) >= b.K {
			return fmt.Errorf("loss: row %d: label %d, allowed 0..%d", i, y, b.K-1)
		}
	}
	return checkCDF(b.CDF)
}

func notFinite[T float32 | float64](i int, row []T) error {
	for k, v := range row {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("loss: row %d, class %d: logit %v, allowed finite numbers", i, k, v)
		}
	}
	return fmt.Errorf("loss: row %d: logits differ by more than the largest number", i)
}

func checkCDF(h []float64) error {
	if h == nil {
		return nil
	}
	var n float64
	for k, v := range h {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("loss: CDF bin %d: count %v, allowed finite numbers from 0", k, v)
		}
		n += v
	}
	if !(n > 0) || math.IsInf(n, 0) {
		return fmt.Errorf("loss: CDF of %d bins with total count %v, allowed more than 0", len(h), n)
	}
	return nil
}
